use hyper::StatusCode;
use queen_core::api::{GroupCursor, GroupSummary, SeekTo};
use queen_types::{Group, PartitionName, QueueName};
use queen_wire::{CursorLine, GroupLine, Query, SeekLine, SeekTarget};

use super::Call;
use crate::app::App;
use crate::error::ApiError;
use crate::reply::{self, Answer};

/// `GET /api/v1/consumer-groups`
pub(super) async fn list(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let groups =
        app.broker.groups(call.context.tenant).await.map_err(|e| ApiError::core("list failed", e))?;
    Ok(reply::ok(queen_wire::group_list(groups.iter().map(group_line))))
}

/// `GET /api/v1/consumer-groups/lagging`
pub(super) async fn lagging(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let seconds = queen_wire::min_lag_seconds(call.query)?;
    let cursors = app.broker.lagging(call.context.tenant, seconds).await;
    let cursors = cursors.map_err(|e| ApiError::core("lagging failed", e))?;
    Ok(reply::ok(queen_wire::lagging(cursors.iter().map(cursor_line))))
}

/// `GET /api/v1/consumer-groups/:group`. A group that nobody knows is an empty object.
pub(super) async fn detail(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let group = Group::new(call.param(0))?;
    let cursors = app.broker.group(call.context.tenant, &group).await;
    let cursors = cursors.map_err(|e| ApiError::core("get failed", e))?;
    let lines: Vec<CursorLine<'_>> = cursors.iter().map(cursor_line).collect();
    Ok(reply::ok(queen_wire::group_detail(&lines)))
}

/// `DELETE /api/v1/consumer-groups/:group`
pub(super) async fn delete(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    remove(app, &call, None).await
}

/// `DELETE /api/v1/consumer-groups/:group/queues/:queue`
pub(super) async fn delete_on_queue(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let queue = QueueName::new(call.param(1))?;
    remove(app, &call, Some(&queue)).await
}

async fn remove(app: &App, call: &Call<'_>, queue: Option<&QueueName>) -> Result<Answer, ApiError> {
    let group = Group::new(call.param(0))?;
    let registrations = Query::parse(call.query)?.lenient_bool("deleteMetadata", true);
    let deleted = app.broker.delete_group(call.context.tenant, &group, queue, registrations).await;
    let deleted = deleted.map_err(|e| ApiError::core("delete failed", e))?;
    let queue = queue.map(QueueName::as_str);
    Ok(reply::ok(queen_wire::group_deleted(&group, queue, deleted.partitions, deleted.registration)))
}

/// `POST /api/v1/consumer-groups/:group/subscription`
pub(super) async fn subscription(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let group = Group::new(call.param(0))?;
    let (from, text) = queen_wire::subscription_from(&call.body)?;
    let changed = app.broker.change_subscription(call.context.tenant, &group, from).await;
    let changed = changed.map_err(|e| ApiError::core("subscription failed", e))?;
    Ok(reply::ok(queen_wire::subscription_changed(&group, &text, changed.queues)))
}

/// `POST /api/v1/consumer-groups/:group/queues/:queue/seek`
pub(super) async fn seek(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let (group, queue) = (Group::new(call.param(0))?, QueueName::new(call.param(1))?);
    let target = queen_wire::seek_queue(&call.body)?;
    let line = SeekLine { group: &group, queue: queue.as_str(), partition: None, to: target };
    let sought = app.broker.seek(call.context.tenant, &queue, &group, to(target)).await;
    match sought.map_err(|e| ApiError::core("seek failed", e))? {
        Some(sought) => Ok(reply::ok(queen_wire::sought(line, sought.partitions))),
        None => Err(ApiError::with_body(StatusCode::NOT_FOUND, queen_wire::seek_refused(line))),
    }
}

/// `POST /api/v1/consumer-groups/:group/queues/:queue/partitions/:partition/seek`
pub(super) async fn seek_partition(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let (group, queue) = (Group::new(call.param(0))?, QueueName::new(call.param(1))?);
    let partition = PartitionName::new(call.param(2))?;
    let target = queen_wire::seek_partition(&call.body)?;
    let line =
        SeekLine { group: &group, queue: queue.as_str(), partition: Some(partition.as_str()), to: target };
    let sought = app.broker.seek_partition(call.context.tenant, &queue, &partition, &group, to(target)).await;
    match sought.map_err(|e| ApiError::core("seek failed", e))? {
        Some(_) => Ok(reply::ok(queen_wire::sought(line, 1))),
        None => Err(ApiError::with_body(StatusCode::NOT_FOUND, queen_wire::seek_refused(line))),
    }
}

fn to(target: SeekTarget) -> SeekTo {
    match target {
        SeekTarget::End => SeekTo::End,
        SeekTarget::Beginning => SeekTo::Beginning,
        SeekTarget::At(at) => SeekTo::At(at),
        SeekTarget::Offset(offset) => SeekTo::Offset(offset),
    }
}

fn group_line(row: &GroupSummary) -> GroupLine<'_> {
    GroupLine {
        group: row.group.as_str(),
        queue: row.queue.as_str(),
        members: row.members,
        lagging: row.lagging,
        pending: row.pending,
        age_seconds: row.age_seconds,
        consumed: row.consumed > 0,
        mode: row.mode.as_deref(),
        from: row.from,
        subscribed_at: row.subscribed_at,
        conflation: row.conflation,
    }
}

fn cursor_line(row: &GroupCursor) -> CursorLine<'_> {
    CursorLine {
        group: row.group.as_str(),
        queue: row.queue.as_str(),
        partition: row.partition.as_str(),
        partition_id: row.partition_id,
        worker: row.worker.as_deref(),
        leased: row.leased,
        consumed: row.consumed,
        pending: row.pending,
        oldest_at: row.oldest_at,
        age_seconds: row.age_seconds,
    }
}
