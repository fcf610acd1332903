//! The three pop routes: one set of query parameters, one answer.

use std::time::Duration;

use queen_types::{
    Group, MessageId, Namespace, PartitionId, StartPoint, SubscriptionMode, Task, Timestamp, Uuid,
};

use crate::json;
use crate::query::{Query, QueryError};

const BATCH: i32 = 200;
const I32: &str = "a 32-bit integer";

/// The parameters of a pop.
#[derive(Debug, Clone)]
pub struct PopQuery {
    /// Most messages, at least 1.
    pub batch: u32,
    /// Most partitions; `None` = no cap.
    pub partitions: Option<u32>,
    /// Long poll.
    pub wait: bool,
    /// How long, when the request says so.
    pub timeout: Option<Duration>,
    /// Commit with the claim.
    pub auto_ack: bool,
    /// Lease length, when the request says a usable one.
    pub lease_seconds: Option<u32>,
    /// The group, queue mode when absent.
    pub group: Group,
    /// Start of a group that is new, when the request says so.
    pub start: Option<StartPoint>,
    /// Discovery key; empty counts as absent.
    pub namespace: Option<Namespace>,
    /// Discovery key; empty counts as absent.
    pub task: Option<Task>,
}

impl PopQuery {
    /// Reads the parameters. `conflation` and `autopilot` are read, checked and without effect.
    ///
    /// # Errors
    /// A value of the wrong type or out of range, a key twice, a name out of bounds.
    pub fn parse(raw: Option<&str>) -> Result<PopQuery, QueryError> {
        let query = Query::parse(raw)?;
        let batch = query.strict_number::<i32>("batch", I32)?.unwrap_or(BATCH);
        let batch = u32::try_from(batch).map_err(|_| QueryError::text("batch must not be negative"))?;
        let partitions = query.strict_number::<i32>("partitions", I32)?.unwrap_or(1);
        let lease = query.strict_number::<i32>("leaseSeconds", I32)?.unwrap_or(0);
        let timeout = query.strict_number::<u64>("timeout", "a number of milliseconds")?;
        query.strict_bool("conflation")?;
        query.strict_bool("autopilot")?;
        Ok(PopQuery {
            batch: batch.max(1),
            partitions: positive(partitions),
            wait: query.strict_bool("wait")?.unwrap_or(false),
            timeout: timeout.map(Duration::from_millis),
            auto_ack: query.strict_bool("autoAck")?.unwrap_or(false),
            lease_seconds: positive(lease),
            group: group(&query, "consumerGroup")?.unwrap_or_else(Group::queue_mode),
            start: start(&query)?,
            namespace: name(&query, "namespace", Namespace::new)?,
            task: name(&query, "task", Task::new)?,
        })
    }
}

/// A count where nothing and less mean "not given".
fn positive(value: i32) -> Option<u32> {
    u32::try_from(value).ok().filter(|&v| v > 0)
}

/// A group parameter; empty is absent.
pub(crate) fn group(query: &Query<'_>, key: &str) -> Result<Option<Group>, QueryError> {
    name(query, key, Group::new)
}

fn name<'q, T, E: std::fmt::Display>(
    query: &'q Query<'_>,
    key: &str,
    make: impl FnOnce(&'q str) -> Result<T, E>,
) -> Result<Option<T>, QueryError> {
    match query.strict(key)? {
        None | Some("") => Ok(None),
        Some(text) => make(text).map(Some).map_err(|e| QueryError::text(e.to_string())),
    }
}

/// `subscriptionFrom` wins over `subscriptionMode`; both are checked.
fn start(query: &Query<'_>) -> Result<Option<StartPoint>, QueryError> {
    let mode = match query.strict("subscriptionMode")? {
        None | Some("") => None,
        Some(word) => Some(
            SubscriptionMode::parse(word)
                .ok_or_else(|| QueryError::value("subscriptionMode", word, "new or all"))?,
        ),
    };
    let from = match query.strict("subscriptionFrom")? {
        None | Some("") => None,
        Some("now") => Some(StartPoint::New),
        Some(text) => Some(StartPoint::At(
            Timestamp::parse(text)
                .map_err(|_| QueryError::value("subscriptionFrom", text, "now or an ISO 8601 timestamp"))?,
        )),
    };
    Ok(from.or(mode.map(StartPoint::from)))
}

/// A claimed partition of an answer.
#[derive(Debug, Clone, Copy)]
pub struct PartitionLine<'a> {
    /// Its id.
    pub id: PartitionId,
    /// Its name.
    pub name: &'a str,
    /// How often the group has been given this head, from 1.
    pub delivery_attempt: u32,
}

/// A delivered message of an answer.
#[derive(Debug, Clone, Copy)]
pub struct MessageLine<'a> {
    /// Its id.
    pub id: MessageId,
    /// Its key.
    pub transaction_id: &'a str,
    /// Its trace.
    pub trace_id: Option<Uuid>,
    /// One JSON value; empty stands for `null`.
    pub payload: &'a [u8],
    /// Authenticated producer.
    pub producer_sub: Option<&'a str>,
    /// When its segment was appended.
    pub created_at: Timestamp,
}

/// Writes the answer of a pop, message by message. What all messages of a partition or segment share is rendered
/// once.
#[derive(Debug)]
pub struct PopWriter {
    out: Vec<u8>,
    /// `,"partitionId":…}` of the current partition.
    tail: Vec<u8>,
    lease_and_group: Vec<u8>,
    stamp: (Timestamp, String),
    first: bool,
}

impl PopWriter {
    /// Opens the answer. `payload_bytes` and `messages` size the buffer.
    pub fn open(
        queue: &str,
        group: &str,
        lease: &str,
        first: PartitionLine<'_>,
        partitions_claimed: usize,
        (messages, payload_bytes): (usize, usize),
    ) -> PopWriter {
        let mut lease_and_group = Vec::with_capacity(64 + lease.len() + group.len());
        json::raw(&mut lease_and_group, ",\"leaseId\":");
        json::string(&mut lease_and_group, lease);
        json::raw(&mut lease_and_group, ",\"consumerGroup\":");
        json::string(&mut lease_and_group, group);

        let mut out = Vec::with_capacity(384 + messages * 448 + payload_bytes);
        json::raw(&mut out, "{\"success\":true,\"queue\":");
        json::string(&mut out, queue);
        json::raw(&mut out, ",\"partition\":");
        json::string(&mut out, first.name);
        json::raw(&mut out, ",\"partitionId\":");
        json::uuid(&mut out, &first.id.0);
        out.extend_from_slice(&lease_and_group);
        json::raw(&mut out, ",\"partitionsClaimed\":");
        json::count(&mut out, partitions_claimed);
        json::raw(&mut out, ",\"messages\":[");
        PopWriter {
            out,
            tail: Vec::new(),
            lease_and_group,
            stamp: (Timestamp::EPOCH, Timestamp::EPOCH.micros_text()),
            first: true,
        }
    }

    /// The messages that follow are of this partition.
    pub fn partition(&mut self, partition: PartitionLine<'_>) {
        let tail = &mut self.tail;
        tail.clear();
        json::raw(tail, ",\"partitionId\":");
        json::uuid(tail, &partition.id.0);
        json::raw(tail, ",\"partition\":");
        json::string(tail, partition.name);
        tail.extend_from_slice(&self.lease_and_group);
        json::raw(tail, ",\"deliveryAttempt\":");
        json::int(tail, i64::from(partition.delivery_attempt));
        tail.push(b'}');
    }

    /// Appends one message.
    pub fn message(&mut self, message: MessageLine<'_>) {
        let out = &mut self.out;
        if !self.first {
            out.push(b',');
        }
        self.first = false;
        json::raw(out, "{\"id\":");
        json::uuid(out, &message.id.0);
        json::raw(out, ",\"transactionId\":");
        json::string(out, message.transaction_id);
        json::raw(out, ",\"traceId\":");
        match &message.trace_id {
            Some(id) => json::uuid(out, id),
            None => json::raw(out, "null"),
        }
        json::raw(out, ",\"data\":");
        if message.payload.is_empty() {
            json::raw(out, "null");
        } else {
            out.extend_from_slice(message.payload);
        }
        json::raw(out, ",\"producerSub\":");
        json::optional(out, message.producer_sub);
        if self.stamp.0 != message.created_at {
            self.stamp = (message.created_at, message.created_at.micros_text());
        }
        json::raw(out, ",\"createdAt\":\"");
        json::raw(out, &self.stamp.1);
        out.push(b'"');
        out.extend_from_slice(&self.tail);
    }

    /// Closes the answer.
    pub fn finish(mut self) -> Vec<u8> {
        json::raw(&mut self.out, "]}");
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(raw: &str) -> String {
        PopQuery::parse(Some(raw)).unwrap_err().to_string()
    }

    #[test]
    fn defaults() {
        let q = PopQuery::parse(None).unwrap();
        assert_eq!((q.batch, q.partitions, q.wait, q.auto_ack), (200, Some(1), false, false));
        assert!(
            q.group.is_queue_mode() && q.start.is_none() && q.timeout.is_none() && q.lease_seconds.is_none()
        );
    }

    #[test]
    fn zero_and_negative_values() {
        let q =
            PopQuery::parse(Some("batch=0&partitions=-3&leaseSeconds=-5&consumerGroup=&namespace=")).unwrap();
        assert_eq!((q.batch, q.partitions, q.lease_seconds), (1, None, None));
        assert!(q.group.is_queue_mode() && q.namespace.is_none());
        assert_eq!(refused("batch=-1"), "batch must not be negative");
    }

    #[test]
    fn unreadable_values_are_named() {
        for raw in [
            "batch=x",
            "batch=",
            "batch=99999999999",
            "partitions=two",
            "timeout=-1",
            "wait=maybe",
            "wait=1",
            "autoAck=banana",
            "leaseSeconds=soon",
            "conflation=1",
            "autopilot=yes",
            "batch=1&batch=2",
        ] {
            let text = refused(raw);
            assert!(text.contains(raw.split('=').next().unwrap()), "{raw}: {text}");
        }
        assert!(refused("consumerGroup=a%00").contains("consumer group"));
    }

    #[test]
    fn start_points() {
        let start = |raw| PopQuery::parse(Some(raw)).unwrap().start;
        assert_eq!(start("subscriptionMode=all"), Some(StartPoint::All));
        assert_eq!(start("subscriptionMode=new-only"), Some(StartPoint::New));
        assert_eq!(start("subscriptionMode="), None);
        assert_eq!(start("subscriptionMode=all&subscriptionFrom=now"), Some(StartPoint::New));
        assert_eq!(
            start("subscriptionFrom=1970-01-01T00%3A00%3A01Z"),
            Some(StartPoint::At(Timestamp(1_000_000)))
        );
        assert!(refused("subscriptionMode=latest").contains("subscriptionMode"));
        assert!(refused("subscriptionFrom=yesterday").contains("subscriptionFrom"));
    }
}
