//! `GET /api/v1/analytics/…`.

use std::time::{SystemTime, UNIX_EPOCH};

use queen_core::Error;
use queen_core::api::{QueueBucket, Span, SystemValue, WorkerBucket, WorkerSummary};
use queen_types::Timestamp;
use queen_wire::{
    ParkedLine, QueueBucketLine, RetentionLine, StatusQuery, SystemLine, TimeRange, WorkerBucketLine,
    WorkerLine,
};

use super::Call;
use crate::app::App;
use crate::error::ApiError;
use crate::reply::{self, Answer};

/// Minutes up to now that a series covers when nothing is asked for.
const LAST_HOUR: i64 = 60;

/// Copies fields of the same names.
macro_rules! line {
    ($type:ident of $from:ident { $($field:ident),* $(,)? }, $($name:ident: $value:expr),* $(,)?) => {
        $type { $($field: $from.$field,)* $($name: $value,)* }
    };
}

/// This machine's clock.
pub(super) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

pub(super) fn failed(error: Error) -> ApiError {
    ApiError::core("analytics failed", error)
}

/// The query of a series, its span, and how that is shown.
pub(super) fn asked(call: &Call<'_>, minutes: i64) -> Result<(StatusQuery, Span, TimeRange), ApiError> {
    let query = StatusQuery::parse(call.query, now(), minutes)?;
    let (from, to, bucket_minutes) = (query.from, query.to, query.bucket_minutes);
    let span = Span { from, to, bucket_seconds: bucket_minutes * 60 };
    Ok((query, span, TimeRange { from, to, bucket_minutes }))
}

/// `GET /api/v1/analytics/queue-lag`
pub(super) async fn queue_lag(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let (range, buckets) = queue_buckets(app, &call).await?;
    let lines: Vec<QueueBucketLine<'_>> = buckets.iter().map(queue_line).collect();
    Ok(reply::ok(queen_wire::queue_lag(range, &lines)))
}

/// `GET /api/v1/analytics/queue-ops`
pub(super) async fn queue_ops(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let (range, buckets) = queue_buckets(app, &call).await?;
    let lines: Vec<QueueBucketLine<'_>> = buckets.iter().map(queue_line).collect();
    Ok(reply::ok(queen_wire::queue_ops(range, &lines)))
}

async fn queue_buckets(app: &App, call: &Call<'_>) -> Result<(TimeRange, Vec<QueueBucket>), ApiError> {
    let (query, span, range) = asked(call, LAST_HOUR)?;
    let (queue, namespace, task) = (query.queue.as_ref(), query.namespace.as_ref(), query.task.as_ref());
    let buckets = app.broker.queue_series(call.context.tenant, span, queue, namespace, task).await;
    Ok((range, buckets.map_err(failed)?))
}

/// `GET /api/v1/analytics/queue-parked-replicas`
pub(super) async fn parked_replicas(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let (query, span, range) = asked(&call, LAST_HOUR)?;
    let buckets = app.broker.parked_series(call.context.tenant, span, query.queue.as_ref()).await;
    let buckets = buckets.map_err(failed)?;
    let lines: Vec<ParkedLine<'_>> = buckets
        .iter()
        .map(|b| line!(ParkedLine of b { bucket, worker, parked }, queue: &b.queue, server: &b.server))
        .collect();
    Ok(reply::ok(queen_wire::parked_replicas(range, &lines)))
}

/// `GET /api/v1/analytics/retention`
pub(super) async fn retention(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let (_, span, range) = asked(&call, LAST_HOUR)?;
    let buckets = app.broker.retention_series(call.context.tenant, span).await.map_err(failed)?;
    let lines: Vec<RetentionLine> = buckets
        .iter()
        .map(|b| line!(RetentionLine of b { age, completed, evicted, events }, bucket: Some(b.bucket)))
        .collect();
    Ok(reply::ok(queen_wire::retention(range, &lines)))
}

/// `GET /api/v1/analytics/worker-metrics`
pub(super) async fn worker_metrics(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let (query, span, range) = asked(&call, LAST_HOUR)?;
    let tenant = call.context.tenant;
    let (series, workers) =
        app.broker.worker_series(span, query.hostname.as_deref(), query.worker).await.map_err(failed)?;
    let (queue, namespace, task) = (query.queue.as_ref(), query.namespace.as_ref(), query.task.as_ref());
    let queues = app.broker.queue_series(tenant, span, queue, namespace, task).await.map_err(failed)?;
    let pending = app.broker.overview(tenant).await.map_err(failed)?.counts.backlog;
    let lines: Vec<QueueBucketLine<'_>> = queues.iter().map(queue_line).collect();
    let body = queen_wire::worker_metrics(
        range,
        &series.iter().map(worker_bucket).collect::<Vec<_>>(),
        &workers.iter().map(worker_line).collect::<Vec<_>>(),
        &lines,
        pending,
    );
    Ok(reply::ok(body))
}

/// `GET /api/v1/analytics/system-metrics`
pub(super) async fn system_metrics(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let (query, span, range) = asked(&call, LAST_HOUR)?;
    let values = app.broker.system_series(span, query.hostname.as_deref()).await.map_err(failed)?;
    let lines: Vec<SystemLine<'_>> = values.iter().map(system_line).collect();
    Ok(reply::ok(queen_wire::system_metrics(range, &lines)))
}

/// `GET /api/v1/analytics/postgres-stats`
pub(super) async fn postgres_stats(app: &App) -> Result<Answer, ApiError> {
    Ok(reply::ok(app.broker.postgres_stats().await.map_err(failed)?.into_bytes()))
}

fn queue_line(b: &QueueBucket) -> QueueBucketLine<'_> {
    line!(QueueBucketLine of b {
        bucket, pop_messages, lag_count, avg_lag, max_lag, push_requests, push_messages, pop_empty, ack_requests,
        ack_success, ack_failed, transactions, created, deleted, partitions, parked,
    }, queue: &b.queue)
}

pub(super) fn worker_bucket(b: &WorkerBucket) -> WorkerBucketLine {
    line!(WorkerBucketLine of b {
        bucket, avg_loop, max_loop, avg_free, min_free, connections, avg_queue, max_queue, jobs, push_requests,
        pop_requests, ack_requests, push_messages, pop_messages, ack_messages, ack_success, ack_failed, lag_count,
        avg_lag, max_lag, db_errors, dead_letters,
    },)
}

pub(super) fn worker_line(w: &WorkerSummary) -> WorkerLine<'_> {
    line!(WorkerLine of w {
        worker, avg_loop, max_loop, free_slots, connections, queue_size, messages, last_seen,
    }, server: &w.server)
}

pub(super) fn system_line(v: &SystemValue) -> SystemLine<'_> {
    line!(SystemLine of v { port, bucket, samples, avg, min, max, last },
        server: &v.server, worker: &v.worker, kind: &v.kind, value: &v.value)
}
