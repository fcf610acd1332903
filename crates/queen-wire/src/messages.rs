//! Browsing of messages, one message, and the replay of dead letters.

use queen_types::{
    Group, MessageId, MessageStatus, Namespace, Offset, PartitionId, PartitionName, QueueName, Task,
    Timestamp, Uuid,
};

use crate::json::{self, Object};
use crate::query::{Query, QueryError};

const LIMIT: i64 = 200;
const MINUTE_MICROS: i64 = 60_000_000;

/// Filter and page of `GET /api/v1/messages`.
#[derive(Debug, Clone, Default)]
pub struct MessagesQuery {
    /// Only this queue.
    pub queue: Option<QueueName>,
    /// Only this partition.
    pub partition: Option<PartitionName>,
    /// Only this namespace.
    pub namespace: Option<Namespace>,
    /// Only this task.
    pub task: Option<Task>,
    /// Only messages in this state.
    pub status: Option<MessageStatus>,
    /// Stored at or after.
    pub from: Option<Timestamp>,
    /// Stored before: the end of the minute that was named.
    pub before: Option<Timestamp>,
    /// Page size.
    pub limit: i64,
    /// Messages to skip.
    pub offset: i64,
}

impl MessagesQuery {
    /// Reads the parameters by the rules of management routes.
    ///
    /// # Errors
    /// A name out of bounds, an unknown status, or an unreadable timestamp.
    pub fn parse(raw: Option<&str>) -> Result<MessagesQuery, QueryError> {
        let query = Query::parse(raw)?;
        let status = query.lenient("status").map(|word| {
            MessageStatus::parse(word).ok_or_else(|| {
                let known = MessageStatus::ALL.map(MessageStatus::as_str).join(", ");
                QueryError::text(format!("status must be one of {known}, got {word:?}"))
            })
        });
        let namespace = if query.lenient("namespace").is_some() { "namespace" } else { "ns" };
        Ok(MessagesQuery {
            queue: query.lenient_name("queue", QueueName::new)?,
            partition: query.lenient_name("partition", PartitionName::new)?,
            namespace: query.lenient_name(namespace, Namespace::new)?,
            task: query.lenient_name("task", Task::new)?,
            status: status.transpose()?,
            from: query.lenient_time("from")?,
            before: query.lenient_time("to")?.map(end_of_minute),
            limit: query.lenient_page("limit", LIMIT),
            offset: query.lenient_page("offset", 0),
        })
    }
}

fn end_of_minute(at: Timestamp) -> Timestamp {
    Timestamp(at.0.div_euclid(MINUTE_MICROS).saturating_add(1).saturating_mul(MINUTE_MICROS))
}

/// Who consumes: without a group, and how many groups.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModeLine {
    /// Somebody without a group.
    pub queue_mode: bool,
    /// Number of named groups.
    pub groups: usize,
}

impl ModeLine {
    fn write(self, o: &mut Object<'_>) {
        let kind = match (self.queue_mode, self.groups) {
            (true, 0) => "queue",
            (false, 0) => "none",
            (false, _) => "bus",
            (true, _) => "hybrid",
        };
        o.object("mode", |o| {
            o.bool("hasQueueMode", self.queue_mode)
                .int("busGroupsCount", i64::try_from(self.groups).unwrap_or(i64::MAX))
                .str("type", kind);
        });
    }
}

/// What a message says of itself, in the listing and in the detail.
#[derive(Debug, Clone, Copy)]
pub struct MessageCore<'a> {
    /// Its id.
    pub id: Option<MessageId>,
    /// Its key.
    pub transaction_id: &'a str,
    /// Its partition.
    pub partition_id: PartitionId,
    /// Name of the partition.
    pub partition: &'a str,
    /// Its queue.
    pub queue: &'a str,
    /// Namespace of the queue.
    pub namespace: &'a str,
    /// Task of the queue.
    pub task: &'a str,
    /// Its state.
    pub status: MessageStatus,
    /// Trace id.
    pub trace_id: Option<Uuid>,
    /// Authenticated producer.
    pub producer_sub: Option<&'a str>,
    /// When it was stored.
    pub created_at: Timestamp,
    /// End of the live lease that covers it.
    pub leased_until: Option<Timestamp>,
    /// One JSON value; empty stands for `null`.
    pub payload: &'a [u8],
    /// The payload is an encryption envelope.
    pub encrypted: bool,
}

impl MessageCore<'_> {
    fn write(&self, o: &mut Object<'_>) {
        match self.id {
            Some(id) => o.uuid("id", &id.0),
            None => o.raw("id", "null"),
        };
        o.str("transactionId", self.transaction_id)
            .uuid("partitionId", &self.partition_id.0)
            .str("queuePath", &format!("{}/{}", self.queue, self.partition))
            .str("queue", self.queue)
            .str("partition", self.partition)
            .str("namespace", self.namespace)
            .str("task", self.task)
            .str("status", self.status.as_str());
        match self.trace_id {
            Some(id) => o.uuid("traceId", &id),
            None => o.raw("traceId", "null"),
        };
        o.opt("producerSub", self.producer_sub)
            .str("createdAt", &self.created_at.millis_text())
            .opt("leaseExpiresAt", self.leased_until.map(Timestamp::millis_text).as_deref())
            .bool("isEncrypted", self.encrypted);
        let payload = if self.payload.is_empty() { b"null" } else { self.payload };
        o.key("data").extend_from_slice(payload);
        o.key("payload").extend_from_slice(payload);
    }
}

/// A message of the listing.
#[derive(Debug, Clone, Copy)]
pub struct BrowseLine<'a> {
    /// What it says of itself.
    pub core: MessageCore<'a>,
    /// Hash of its key, hexadecimal.
    pub hash: &'a str,
    /// Its state to those who consume without a group.
    pub queue_status: MessageStatus,
    /// Named groups that are done with it.
    pub consumed_by: usize,
    /// Named groups in all.
    pub groups: usize,
    /// Priority of the queue.
    pub priority: i32,
    /// First offset of its segment.
    pub segment: Offset,
    /// Its place in the segment.
    pub frame: usize,
}

/// `GET /api/v1/messages`
pub fn messages<'a>(lines: &[BrowseLine<'a>], mode: ModeLine) -> Vec<u8> {
    let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    json::object(|o| {
        o.array("messages", lines, |out, line| {
            let mut o = Object::open(out);
            line.core.write(&mut o);
            o.str("txnHash", line.hash)
                .str("queueStatus", line.queue_status.as_str())
                .object("busStatus", |o| {
                    o.int("consumedBy", count(line.consumed_by)).int("totalGroups", count(line.groups));
                })
                .int("queuePriority", i64::from(line.priority))
                .bool("payloadAvailable", true)
                .object("segment", |o| {
                    o.int("seq", line.segment).int("frameIdx", count(line.frame));
                });
            o.close();
        });
        mode.write(o);
        o.int("total", count(lines.len()));
    })
}

/// A group of the detail.
#[derive(Debug, Clone, Copy)]
pub struct MessageGroup<'a> {
    /// Its name.
    pub name: &'a str,
    /// It is done with the message.
    pub consumed: bool,
    /// End of its live lease on the partition.
    pub leased_until: Option<Timestamp>,
}

/// One message in detail.
#[derive(Debug, Clone, Copy)]
pub struct MessageLines<'a> {
    /// What it says of itself.
    pub core: MessageCore<'a>,
    /// Why it was given up.
    pub error: Option<&'a str>,
    /// Retries used when it was given up.
    pub retry_count: i32,
    /// `leaseTime`, `retryLimit`, `retryDelay`, `ttl` and `priority` of the queue.
    pub options: [i32; 5],
    /// Who consumes.
    pub mode: ModeLine,
    /// Every group.
    pub groups: &'a [MessageGroup<'a>],
}

/// `GET /api/v1/messages/:partitionId/:transactionId`
pub fn message(lines: &MessageLines<'_>) -> Vec<u8> {
    json::object(|o| {
        lines.core.write(o);
        o.opt("errorMessage", lines.error).int("retryCount", i64::from(lines.retry_count));
        o.object("queueConfig", |o| {
            let keys = ["leaseTime", "retryLimit", "retryDelay", "ttl", "priority"];
            for (key, value) in keys.into_iter().zip(lines.options) {
                o.int(key, i64::from(value));
            }
        });
        lines.mode.write(o);
        o.array("consumerGroups", lines.groups, |out, group| {
            let mut o = Object::open(out);
            o.str("name", group.name)
                .str("group", group.name)
                .bool("consumed", group.consumed)
                .opt("leaseExpiresAt", group.leased_until.map(Timestamp::millis_text).as_deref());
            o.close();
        });
    })
}

/// Why a call on the dead letters of a message found nothing.
const NO_RECORD: &str = "no dead-letter record here; a live message cannot be deleted or replayed";

/// Answer to a deletion or replay by address that found no record.
pub fn no_dead_letter(partition: PartitionId, transaction_id: &str) -> Vec<u8> {
    json::object(|o| {
        o.bool("success", false)
            .uuid("partitionId", &partition.0)
            .str("transactionId", transaction_id)
            .str("error", "Message not found")
            .str("message", NO_RECORD);
    })
}

/// Answer to a replay by record id that found no record.
pub fn no_record(record: &Uuid) -> Vec<u8> {
    json::object(|o| {
        o.bool("success", false).uuid("dlqId", record).str("error", "Dead letter not found");
    })
}

/// Answer to the deletion of a message's dead letters.
pub fn dead_letters_deleted(partition: PartitionId, transaction_id: &str) -> Vec<u8> {
    json::object(|o| {
        o.bool("success", true)
            .uuid("partitionId", &partition.0)
            .str("transactionId", transaction_id)
            .str("message", "Message deleted successfully");
    })
}

/// Answer to a purge.
pub fn purged(queue: &QueueName, group: Option<&Group>, deleted: u64) -> Vec<u8> {
    json::object(|o| {
        o.bool("success", true)
            .int("deleted", i64::try_from(deleted).unwrap_or(i64::MAX))
            .str("queue", queue.as_str())
            .opt("consumerGroup", group.map(Group::as_str));
    })
}

/// Queue and group of `DELETE /api/v1/dlq`.
///
/// # Errors
/// No queue, or a name out of bounds.
pub fn purge_query(raw: Option<&str>) -> Result<(QueueName, Option<Group>), QueryError> {
    let query = Query::parse(raw)?;
    let queue = query.lenient_name("queue", QueueName::new)?;
    let queue = queue.ok_or_else(|| QueryError::text("queue is required"))?;
    Ok((queue, query.lenient_name("consumerGroup", Group::new)?))
}

/// A replay that was made, or refused by deduplication.
#[derive(Debug, Clone, Copy)]
pub struct ReplayLine<'a> {
    /// Its record id.
    pub record: Uuid,
    /// The group that had given it up.
    pub group: &'a str,
    /// Its queue.
    pub queue: &'a str,
    /// Its partition.
    pub partition: &'a str,
    /// The key it had.
    pub original: &'a str,
    /// The key it has now.
    pub transaction_id: &'a str,
    /// Id of the message that stands for it.
    pub message_id: MessageId,
    /// Its offset, when it was stored now.
    pub offset: Option<Offset>,
}

/// Answer to a replay.
pub fn replayed(line: &ReplayLine<'_>) -> Vec<u8> {
    let (result, status) = match line.offset {
        Some(_) => ("moved", "queued"),
        None => ("duplicate", "duplicate"),
    };
    json::object(|o| {
        o.bool("success", true)
            .str("result", result)
            .str("queue", line.queue)
            .str("partition", line.partition)
            .str("consumerGroup", line.group)
            .uuid("dlqId", &line.record)
            .str("originalTransactionId", line.original)
            .bool("dlqRowRemoved", line.offset.is_some())
            .object("replayedAs", |o| {
                o.int("index", 0)
                    .uuid("message_id", &line.message_id.0)
                    .str("transaction_id", line.transaction_id)
                    .str("queueName", line.queue)
                    .str("status", status);
                if let Some(offset) = line.offset {
                    o.int("offset", offset);
                }
            });
    })
}

/// A replay that was not made.
pub fn replay_failed(result: &str, error: &str, removed: Option<bool>) -> Vec<u8> {
    json::object(|o| {
        o.bool("success", false).str("result", result);
        match removed {
            Some(removed) => o.bool("dlqRowRemoved", removed),
            None => o.raw("dlqRowRemoved", "null"),
        };
        o.str("error", error);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_minute_is_included() {
        let query = MessagesQuery::parse(Some(
            "to=2031-04-05T06:07:08Z&from=2031-04-05T06:07:08Z&ns=a&status=dead_letter&limit=-1",
        ))
        .unwrap();
        assert_eq!(query.before.unwrap().micros_text(), "2031-04-05T06:08:00.000000Z");
        assert_eq!(query.from.unwrap().micros_text(), "2031-04-05T06:07:08.000000Z");
        assert_eq!(query.namespace.unwrap().as_str(), "a");
        assert_eq!((query.status, query.limit, query.offset), (Some(MessageStatus::DeadLetter), 0, 0));
        assert_eq!(MessagesQuery::parse(None).unwrap().limit, 200);
    }

    #[test]
    fn what_is_refused() {
        for (raw, word) in [("status=done", "dead_letter"), ("from=soon", "from"), ("to=soon", "to: ")] {
            let refused = MessagesQuery::parse(Some(raw)).unwrap_err().to_string();
            assert!(refused.contains(word), "{refused}");
        }
        assert_eq!(purge_query(None).unwrap_err().to_string(), "queue is required");
        assert_eq!(purge_query(Some("queue=q&consumerGroup=g")).unwrap().0.as_str(), "q");
    }
}
