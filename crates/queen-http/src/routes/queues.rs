use hyper::StatusCode;
use queen_core::api::{Counts, KeyTotals, QueueSummary};
use queen_types::{Group, QueueName};
use queen_wire::{
    CountsLine, DepthLine, DetailPartition, KeyKind, KeyLine, Query, QueueLine, keys, queue_deleted,
    queue_detail, queue_list,
};

use super::Call;
use crate::app::App;
use crate::error::ApiError;
use crate::reply::{self, Answer};

/// `GET /api/v1/resources/queues`: the full list, newest queue first.
pub(super) async fn list(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let live = Query::parse(call.query)?.strict("stats")? != Some("cached");
    let queues =
        app.broker.queues(call.context.tenant).await.map_err(|e| ApiError::core("list failed", e))?;
    Ok(reply::ok(queue_list(queues.iter().map(queue_line), live)))
}

/// `GET /api/v1/resources/queues/:queue`
pub(super) async fn detail(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let queue = QueueName::new(call.param(0))?;
    let detail = app
        .broker
        .queue(call.context.tenant, &queue)
        .await
        .map_err(|e| ApiError::core("get failed", e))?
        .ok_or_else(not_found)?;
    let partitions = detail.partitions.iter().map(|p| DetailPartition {
        id: p.id,
        name: p.name.as_str(),
        created_at: p.created_at,
        counts: counts(p.counts),
        oldest: p.oldest_message,
        newest: p.newest_message,
    });
    Ok(reply::ok(queue_detail(queue_line(&detail.summary), &detail.options, partitions)))
}

/// `DELETE /api/v1/resources/queues/:queue`. Deleting what is not there is a 200 that says so.
pub(super) async fn delete(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let queue = QueueName::new(call.param(0))?;
    let deleted = app
        .broker
        .delete_queue(call.context.tenant, &queue)
        .await
        .map_err(|e| ApiError::core("delete failed", e))?;
    Ok(reply::ok(queue_deleted(queue.as_str(), deleted.existed)))
}

/// `GET /api/v1/resources/queues/:queue/depth`
pub(super) async fn depth(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let query = Query::parse(call.query)?;
    let group = query.strict("group")?.filter(|g| !g.is_empty()).map(Group::new).transpose()?;
    let queue = QueueName::new(call.param(0))?;
    let depth = app
        .broker
        .depth(call.context.tenant, &queue, group.as_ref())
        .await
        .map_err(|e| ApiError::core("depth failed", e))?
        .ok_or_else(not_found)?;
    let lines: Vec<DepthLine<'_>> = depth
        .partitions
        .iter()
        .map(|(name, pending, processing)| DepthLine {
            partition: name.as_str(),
            pending: *pending,
            processing: *processing,
        })
        .collect();
    Ok(reply::ok(queen_wire::depth(queue.as_str(), group.as_ref().map(Group::as_str), &lines)))
}

/// `GET /api/v1/resources/namespaces`
pub(super) async fn namespaces(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let totals = app.broker.namespaces(call.context.tenant).await;
    let totals = totals.map_err(|e| ApiError::core("namespaces failed", e))?;
    Ok(reply::ok(keys(KeyKind::Namespace, totals.iter().map(key_line))))
}

/// `GET /api/v1/resources/tasks`
pub(super) async fn tasks(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let totals = app.broker.tasks(call.context.tenant).await;
    let totals = totals.map_err(|e| ApiError::core("tasks failed", e))?;
    Ok(reply::ok(keys(KeyKind::Task, totals.iter().map(key_line))))
}

fn not_found() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "Queue not found")
}

fn queue_line(queue: &QueueSummary) -> QueueLine<'_> {
    QueueLine {
        id: queue.id,
        name: queue.name.as_str(),
        namespace: &queue.namespace,
        task: &queue.task,
        created_at: queue.created_at,
        partitions: queue.partitions,
        retained_bytes: queue.retained_bytes,
        segments: queue.segments,
        counts: counts(queue.counts),
    }
}

fn counts(counts: Counts) -> CountsLine {
    CountsLine {
        total: counts.total,
        pending: counts.pending,
        processing: counts.processing,
        completed: counts.completed,
        dead_letter: counts.dead_letter,
    }
}

fn key_line(totals: &KeyTotals) -> KeyLine<'_> {
    KeyLine {
        key: &totals.key,
        queues: totals.queues,
        partitions: totals.partitions,
        total: totals.total,
        pending: totals.pending,
    }
}
