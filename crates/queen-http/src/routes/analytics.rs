//! `GET /api/v1/analytics/…`.

use std::time::{SystemTime, UNIX_EPOCH};

use queen_core::Error;
use queen_core::api::Span;
use queen_types::Timestamp;
use queen_types::series::QueueBucket;
use queen_wire::{StatusQuery, TimeRange};

use super::Call;
use crate::app::App;
use crate::error::ApiError;
use crate::reply::{self, Answer};

/// Minutes up to now that a series covers when nothing is asked for.
const LAST_HOUR: i64 = 60;

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
    Ok(reply::ok(queen_wire::queue_lag(range, &buckets)))
}

/// `GET /api/v1/analytics/queue-ops`
pub(super) async fn queue_ops(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let (range, buckets) = queue_buckets(app, &call).await?;
    Ok(reply::ok(queen_wire::queue_ops(range, &buckets)))
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
    Ok(reply::ok(queen_wire::parked_replicas(range, &buckets.map_err(failed)?)))
}

/// `GET /api/v1/analytics/retention`
pub(super) async fn retention(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let (_, span, range) = asked(&call, LAST_HOUR)?;
    let buckets = app.broker.retention_series(call.context.tenant, span).await.map_err(failed)?;
    Ok(reply::ok(queen_wire::retention(range, &buckets)))
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
    Ok(reply::ok(queen_wire::worker_metrics(range, &series, &workers, &queues, pending)))
}

/// `GET /api/v1/analytics/system-metrics`
pub(super) async fn system_metrics(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let (query, span, range) = asked(&call, LAST_HOUR)?;
    let values = app.broker.system_series(span, query.hostname.as_deref()).await.map_err(failed)?;
    Ok(reply::ok(queen_wire::system_metrics(range, &values)))
}

/// `GET /api/v1/analytics/postgres-stats`
pub(super) async fn postgres_stats(app: &App) -> Result<Answer, ApiError> {
    Ok(reply::ok(app.broker.postgres_stats().await.map_err(failed)?.into_bytes()))
}
