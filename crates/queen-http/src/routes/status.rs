//! `GET /api/v1/status…`, the overview, and what recomputes the statistics.

use std::collections::BTreeMap;

use hyper::StatusCode;
use queen_core::api::{Counts, DeadLetterSummary, Overview, QueueFilter, Span, Spread, StoredQueue};
use queen_types::QueueName;
use queen_wire::{
    CountsLine, DeadLettersLine, JobLine, LeasesLine, OverviewLine, PinLine, RefreshedLine, SpreadLine,
    StatusDocument, StatusPartitionLine, StatusQuery, StoredQueueLine, SystemLine, WorkerBucketLine,
    WorkerLine,
};

use super::Call;
use super::analytics::{asked, now, system_line, worker_bucket, worker_line};
use crate::app::App;
use crate::error::ApiError;
use crate::reply::{self, Answer};

/// Minutes up to now that the status document covers when nothing is asked for.
const LAST_HOUR: i64 = 60;
/// The same of the ingest histogram.
const LAST_DAY: i64 = 1_440;
/// Queues that the status document lists.
const QUEUES_MAX: i64 = 1_000;

fn failed(error: queen_core::Error) -> ApiError {
    ApiError::core("status failed", error)
}

/// `GET /api/v1/resources/overview`
pub(super) async fn overview(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let overview = app.broker.overview(call.context.tenant).await;
    let o = overview.map_err(|e| ApiError::core("overview failed", e))?;
    Ok(reply::ok(queen_wire::overview(&overview_line(&o))))
}

pub(super) fn overview_line(o: &Overview) -> OverviewLine {
    let spread = |s: Spread| SpreadLine { avg: s.avg, median: s.median, min: s.min, max: s.max };
    OverviewLine {
        queues: o.queues,
        partitions: o.partitions,
        namespaces: o.namespaces,
        tasks: o.tasks,
        counts: stored_counts(&o.counts),
        time_lag: spread(o.time_lag),
        offset_lag: spread(o.offset_lag),
        ingested: o.ingested_per_second,
        processed: o.processed_per_second,
        now: o.now,
        age_seconds: o.age_seconds,
    }
}

/// `POST /api/v1/stats/refresh`. While another broker does it, nothing is done here and the answer says zero.
pub(super) async fn refresh(app: &App) -> Result<Answer, ApiError> {
    let refreshed = app.broker.refresh_stats().await.map_err(|e| ApiError::core("refresh failed", e))?;
    let r = refreshed.unwrap_or_default();
    let line = RefreshedLine {
        queues: r.queues,
        partitions: r.partitions,
        namespaces: r.namespaces,
        tasks: r.tasks,
        systems: r.systems,
    };
    Ok(reply::ok(queen_wire::refreshed(line, now())))
}

/// `GET /api/v1/status/queues`
pub(super) async fn queues(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let query = StatusQuery::parse(call.query, now(), LAST_HOUR)?;
    let (limit, offset) = (query.limit, query.offset);
    let queues = app.broker.stored_queues(call.context.tenant, &filter(query)).await.map_err(failed)?;
    let lines: Vec<StoredQueueLine<'_>> = queues.iter().map(queue_line).collect();
    Ok(reply::ok(queen_wire::status_queues(&lines, limit, offset)))
}

/// `GET /api/v1/status/queues/:queue`
pub(super) async fn queue(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let name = QueueName::new(call.param(0))?;
    let detail = app.broker.queue(call.context.tenant, &name).await.map_err(failed)?;
    let detail = detail.ok_or_else(|| ApiError::new(StatusCode::NOT_FOUND, "Queue not found"))?;
    let summary = &detail.summary;
    let line = StoredQueueLine {
        id: summary.id,
        name: summary.name.as_str(),
        namespace: &summary.namespace,
        task: &summary.task,
        created_at: summary.created_at,
        partitions: summary.partitions,
        counts: counts(summary.counts),
        consumed: 0,
    };
    let pins = app.broker.pins(call.context.tenant, &name).await.map_err(failed)?;
    let pins: Vec<PinLine<'_>> = pins
        .iter()
        .map(|pin| PinLine { group: pin.group.as_deref(), partitions: pin.partitions, oldest: pin.oldest })
        .collect();
    let partitions = detail.partitions.iter().map(|p| StatusPartitionLine {
        id: p.id,
        name: p.name.as_str(),
        created_at: p.created_at,
        counts: counts(p.counts),
        consumed: p.counts.completed,
        oldest: p.oldest_message,
        newest: p.newest_message,
    });
    Ok(reply::ok(queen_wire::status_queue(&line, &detail.options, &pins, partitions)))
}

/// `GET /api/v1/status`
pub(super) async fn document(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let (query, span, range) = asked(&call, LAST_HOUR)?;
    let (broker, tenant) = (&app.broker, call.context.tenant);
    let overview = broker.overview(tenant).await.map_err(failed)?;
    let (series, workers) = broker.worker_series(span, None, None).await.map_err(failed)?;
    let system = broker.system_series(span, None).await.map_err(failed)?;
    let leases = broker.lease_summary(tenant, query.queue.as_ref()).await.map_err(failed)?;
    let dead = broker.dead_letter_summary(tenant, span, query.queue.as_ref()).await.map_err(failed)?;
    let narrowed = query.queue.is_some() || query.namespace.is_some() || query.task.is_some();
    let queues =
        broker.stored_queues(tenant, &QueueFilter { limit: QUEUES_MAX, offset: 0, ..filter(query) }).await;
    let queues = queues.map_err(failed)?;
    let mut totals = stored_counts(&overview.counts);
    if narrowed {
        totals = CountsLine::default();
        for queue in &queues {
            let c = stored_counts(&queue.counts);
            totals.total += c.total;
            totals.pending += c.pending;
            totals.processing += c.processing;
            totals.completed += c.completed;
            totals.dead_letter += c.dead_letter;
        }
    }
    let DeadLetterSummary { current, inside, partitions, errors } = dead;
    let series: Vec<WorkerBucketLine> = series.iter().map(worker_bucket).collect();
    let workers: Vec<WorkerLine<'_>> = workers.iter().map(worker_line).collect();
    let system: Vec<SystemLine<'_>> = system.iter().map(system_line).collect();
    let lines: Vec<StoredQueueLine<'_>> = queues.iter().map(queue_line).collect();
    Ok(reply::ok(queen_wire::status_document(&StatusDocument {
        range,
        age_seconds: overview.age_seconds,
        series: &series,
        workers: &workers,
        system: &system,
        queues: &lines,
        counts: totals,
        leases: LeasesLine {
            active: leases.active,
            partitions: leases.partitions,
            leased: leases.leased,
            acked: leases.acked,
        },
        dead_letters: DeadLettersLine { current, inside, partitions, errors: &errors },
    })))
}

/// `GET /api/v1/status/analytics`
pub(super) async fn ingest(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let query = StatusQuery::parse(call.query, now(), LAST_DAY)?;
    let span = Span { from: query.from, to: query.to, bucket_seconds: query.interval_minutes() * 60 };
    let (queue, namespace, task) = (query.queue.as_ref(), query.namespace.as_ref(), query.task.as_ref());
    let buckets = app.broker.queue_series(call.context.tenant, span, queue, namespace, task).await;
    let mut points = BTreeMap::new();
    for bucket in buckets.map_err(failed)? {
        *points.entry(bucket.bucket).or_insert(0) += bucket.push_messages;
    }
    let points: Vec<_> = points.into_iter().collect();
    Ok(reply::ok(queen_wire::ingest(&points, &query.interval, query.from, query.to)))
}

/// `GET /api/v1/status/jobs`
pub(super) async fn jobs(app: &App) -> Result<Answer, ApiError> {
    let jobs = app.broker.jobs().await.map_err(failed)?;
    let ms = |d: std::time::Duration| i64::try_from(d.as_millis()).unwrap_or(i64::MAX);
    Ok(reply::ok(queen_wire::jobs(jobs.iter().map(|job| JobLine {
        task: &job.task,
        period_ms: ms(job.period),
        enabled: job.enabled,
        holder: job.holder.as_deref(),
        runs: job.runs,
        next_due_at: job.next_due_at,
        lease_until: job.lease_until,
        last_start_at: job.last_start_at,
        last_end_at: job.last_end_at,
        last_duration_ms: job.last_duration.map(ms),
    }))))
}

/// `POST /api/v1/system/jobs/:task`
pub(super) async fn switch_job(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let enabled = queen_wire::enabled_of(&call.body)?;
    let task = call.param(0);
    match app.broker.switch_job(task, enabled).await.map_err(failed)? {
        true => Ok(reply::ok(queen_wire::job_switched(task, enabled))),
        false => Err(ApiError::new(StatusCode::NOT_FOUND, &format!("Job {task:?} not found"))),
    }
}

/// `GET /api/v1/status/admission`
pub(super) fn admission(app: &App) -> Answer {
    let shown = app.broker.admission();
    let lanes: Vec<(&str, usize, usize, usize)> =
        shown.lanes.iter().map(|(lane, at)| (lane.as_str(), at.in_flight, at.cap, at.waiting)).collect();
    reply::ok(queen_wire::admission(&queen_wire::AdmissionLine {
        budget: shown.budget.floor(),
        mode: &shown.mode.to_string(),
        trains_per_second: shown.trains.trains_per_s,
        transactions_per_train: shown.trains.txn_per_train,
        cycle_ms: shown.trains.cycle.unwrap_or_default().as_secs_f64() * 1e3,
        lanes: &lanes,
    }))
}

fn filter(query: StatusQuery) -> QueueFilter {
    let StatusQuery { queue, namespace, task, limit, offset, .. } = query;
    QueueFilter { queue, namespace, task, limit, offset }
}

fn queue_line(queue: &StoredQueue) -> StoredQueueLine<'_> {
    StoredQueueLine {
        id: queue.id,
        name: &queue.name,
        namespace: &queue.namespace,
        task: &queue.task,
        created_at: queue.created_at,
        partitions: queue.partitions,
        counts: stored_counts(&queue.counts),
        consumed: queue.consumed,
    }
}

/// What is under a lease is not pending on the wire.
fn stored_counts(c: &queen_core::api::StoredCounts) -> CountsLine {
    CountsLine {
        total: c.total,
        pending: c.ready(),
        processing: c.processing,
        completed: c.completed,
        dead_letter: c.dead_letter,
    }
}

fn counts(c: Counts) -> CountsLine {
    CountsLine {
        total: c.total,
        pending: c.pending,
        processing: c.processing,
        completed: c.completed,
        dead_letter: c.dead_letter,
    }
}
