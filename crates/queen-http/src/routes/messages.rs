use hyper::StatusCode;
use queen_core::Error;
use queen_core::api::{
    BrowseFilter, ConsumerMode, MessageDetail, Replay, ReplayOutcome, ReplayTarget, StoredMessage,
};
use queen_types::{MessageId, Offset, PartitionId, Uuid};
use queen_wire::{
    BrowseLine, MessageCore, MessageGroup, MessageLines, MessagesQuery, ModeLine, ReplayLine, replay_failed,
};

use super::Call;
use crate::app::App;
use crate::error::{ApiError, statement};
use crate::reply::{self, Answer};

/// `GET /api/v1/messages`
pub(super) async fn list(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let query = MessagesQuery::parse(call.query)?;
    let filter = BrowseFilter {
        queue: query.queue,
        partition: query.partition,
        namespace: query.namespace,
        task: query.task,
        status: query.status,
        from: query.from,
        before: query.before,
        limit: u64::try_from(query.limit).unwrap_or(0),
        offset: u64::try_from(query.offset).unwrap_or(0),
    };
    let page = app.broker.browse(call.context.tenant, &filter).await;
    let page = page.map_err(|e| ApiError::core("list failed", e))?;
    let hashes: Vec<String> = page.messages.iter().map(|message| message.hash.to_hex()).collect();
    let lines: Vec<BrowseLine<'_>> =
        page.messages.iter().zip(&hashes).map(|(message, hash)| browse_line(message, hash)).collect();
    Ok(reply::ok(queen_wire::messages(&lines, mode(page.mode))))
}

/// `GET /api/v1/messages/:partitionId/:transactionId`
pub(super) async fn detail(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let partition = partition(&call)?;
    let key = call.param(1);
    let message = app.broker.message(call.context.tenant, partition, key).await;
    let message = message
        .map_err(|e| ApiError::core("resolve failed", e))?
        .ok_or_else(|| ApiError::new(StatusCode::NOT_FOUND, "Message not found"))?;
    let groups: Vec<MessageGroup<'_>> = message
        .groups
        .iter()
        .map(|(group, consumed)| MessageGroup {
            name: &group.group,
            consumed: *consumed,
            leased_until: group.leased.map(|(_, until)| until),
        })
        .collect();
    Ok(reply::ok(queen_wire::message(&MessageLines {
        core: core_of(&message, partition, key),
        error: message.dead.as_ref().and_then(|dead| dead.error.as_deref()),
        retry_count: message.dead.as_ref().map_or(0, |dead| dead.retry_count),
        options: message.options,
        mode: mode(message.mode),
        groups: &groups,
    })))
}

/// `DELETE /api/v1/messages/:partitionId/:transactionId`: its dead letters, never the message.
pub(super) async fn delete(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let partition = partition(&call)?;
    let key = call.param(1);
    let deleted = app.broker.delete_dead_letters(call.context.tenant, partition, key).await;
    match deleted.map_err(|e| ApiError::core("delete failed", e))? {
        0 => Err(ApiError::with_body(StatusCode::NOT_FOUND, queen_wire::no_dead_letter(partition, key))),
        _ => Ok(reply::ok(queen_wire::dead_letters_deleted(partition, key))),
    }
}

/// `POST /api/v1/messages/:partitionId/:transactionId/retry`
pub(super) async fn retry(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let partition = partition(&call)?;
    let key = call.param(1).to_owned();
    let missing = queen_wire::no_dead_letter(partition, &key);
    replay(app, &call, &ReplayTarget::Message { partition, transaction_id: key }, missing).await
}

/// `POST /api/v1/dlq/:id/replay`
pub(super) async fn replay_record(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let record = uuid(&call, "id")?;
    replay(app, &call, &ReplayTarget::Record(record), queen_wire::no_record(&record)).await
}

/// `DELETE /api/v1/dlq`
pub(super) async fn purge(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let (queue, group) = queen_wire::purge_query(call.query)?;
    let deleted = app.broker.purge_dead_letters(call.context.tenant, &queue, group.as_ref()).await;
    let deleted = deleted.map_err(|e| ApiError::core("purge failed", e))?;
    Ok(reply::ok(queen_wire::purged(&queue, group.as_ref(), deleted)))
}

async fn replay(
    app: &App,
    call: &Call<'_>,
    target: &ReplayTarget,
    missing: Vec<u8>,
) -> Result<Answer, ApiError> {
    if app.broker.maintenance().push {
        let text = "push maintenance is on; nothing is replayed before it is off";
        let body = replay_failed("maintenance", text, Some(false));
        return Err(ApiError::with_body(StatusCode::SERVICE_UNAVAILABLE, body));
    }
    let outcome = match app.broker.replay(call.context.tenant, target).await {
        Ok(outcome) => outcome,
        Err(Error::Statement { class, sqlstate, message }) => {
            // Without a code of the server nobody knows whether it was committed.
            let removed = sqlstate.is_some().then_some(false);
            let text = format!("replay failed: {}", statement(class, sqlstate.as_deref(), &message));
            let body = replay_failed("error", &text, removed);
            return Err(ApiError::with_body(StatusCode::INTERNAL_SERVER_ERROR, body));
        }
        Err(error) => return Err(ApiError::core("replay failed", error)),
    };
    Ok(match outcome {
        ReplayOutcome::Moved { replay, message_id, offset } => {
            reply::ok(queen_wire::replayed(&replay_line(&replay, message_id, Some(offset))))
        }
        ReplayOutcome::Duplicate { replay, message_id } => {
            reply::ok(queen_wire::replayed(&replay_line(&replay, message_id, None)))
        }
        ReplayOutcome::Missing => return Err(ApiError::with_body(StatusCode::NOT_FOUND, missing)),
        ReplayOutcome::Maintenance => {
            let text = "push maintenance mode is on: nothing is replayed until it ends";
            let body = replay_failed("maintenance", text, Some(false));
            return Err(ApiError::with_body(StatusCode::SERVICE_UNAVAILABLE, body));
        }
        ReplayOutcome::Empty(_) => {
            let text = "the message was deleted, or could not be decoded, before it was given up: there is no payload to replay";
            let body = replay_failed("empty", text, Some(false));
            return Err(ApiError::with_body(StatusCode::UNPROCESSABLE_ENTITY, body));
        }
    })
}

fn replay_line(replay: &Replay, message_id: MessageId, offset: Option<Offset>) -> ReplayLine<'_> {
    ReplayLine {
        record: replay.record,
        group: &replay.group,
        queue: replay.queue.as_str(),
        partition: replay.partition.as_str(),
        original: &replay.original,
        transaction_id: replay.transaction_id.as_str(),
        message_id,
        offset,
    }
}

/// The partition id of the path.
pub(super) fn partition(call: &Call<'_>) -> Result<PartitionId, ApiError> {
    uuid(call, "partitionId").map(PartitionId)
}

fn uuid(call: &Call<'_>, name: &str) -> Result<Uuid, ApiError> {
    let text = call.param(0);
    Uuid::try_parse(text)
        .map_err(|_| ApiError::bad_request(&format!("invalid {name} {text:?}: it must be a UUID")))
}

fn mode(mode: ConsumerMode) -> ModeLine {
    ModeLine { queue_mode: mode.queue_mode, groups: mode.groups }
}

fn browse_line<'a>(message: &'a StoredMessage, hash: &'a str) -> BrowseLine<'a> {
    BrowseLine {
        core: MessageCore {
            id: Some(message.id),
            transaction_id: &message.transaction_id,
            partition_id: message.partition_id,
            partition: message.partition.as_str(),
            queue: message.queue.as_str(),
            namespace: &message.namespace,
            task: &message.task,
            status: message.status,
            trace_id: message.trace_id,
            producer_sub: message.producer_sub.as_deref(),
            created_at: message.created_at,
            leased_until: message.leased_until,
            payload: &message.payload,
            encrypted: message.encrypted,
        },
        hash,
        queue_status: message.queue_status,
        consumed_by: message.consumed_by,
        groups: message.groups,
        priority: message.priority,
        segment: message.base_offset,
        frame: message.frame,
    }
}

fn core_of<'a>(message: &'a MessageDetail, partition: PartitionId, key: &'a str) -> MessageCore<'a> {
    MessageCore {
        id: message.id,
        transaction_id: key,
        partition_id: partition,
        partition: message.partition.as_str(),
        queue: message.queue.as_str(),
        namespace: &message.namespace,
        task: &message.task,
        status: message.status,
        trace_id: message.trace_id,
        producer_sub: message.producer_sub.as_deref(),
        created_at: message.created_at,
        leased_until: message.leased_until,
        payload: message.payload.as_deref().unwrap_or_default(),
        encrypted: message.encrypted,
    }
}
