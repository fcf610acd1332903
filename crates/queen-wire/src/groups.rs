//! Consumer groups: list, lag, detail, deletion, subscription and seek.

use queen_types::{Group, Offset, PartitionId, Timestamp};
use serde_json::{Map, Value};

use crate::body::{self, BodyError};
use crate::json::{self, Object};
use crate::query::{Query, QueryError};

/// A group is called lagging when its oldest pending message is older, seconds.
const LAGGING_SECONDS: i64 = 300;
/// Threshold of the listing of lagging partitions, seconds.
const MIN_LAG_SECONDS: i64 = 3600;

/// A group on a queue.
#[derive(Debug, Clone, Copy)]
pub struct GroupLine<'a> {
    /// The group.
    pub group: &'a str,
    /// The queue.
    pub queue: &'a str,
    /// Number of its cursors.
    pub members: i64,
    /// Partitions with something pending.
    pub lagging: i64,
    /// Messages pending.
    pub pending: i64,
    /// Age of the oldest of them, seconds.
    pub age_seconds: i64,
    /// Whether it ever completed a message.
    pub consumed: bool,
    /// Mode of its registration.
    pub mode: Option<&'a str>,
    /// Start point of its registration.
    pub from: Option<Timestamp>,
    /// Time of its registration.
    pub subscribed_at: Option<Timestamp>,
    /// Stored policy.
    pub conflation: bool,
}

/// A group on a partition.
#[derive(Debug, Clone, Copy)]
pub struct CursorLine<'a> {
    /// The group.
    pub group: &'a str,
    /// The queue.
    pub queue: &'a str,
    /// The partition.
    pub partition: &'a str,
    /// Its row id.
    pub partition_id: PartitionId,
    /// Holder of the lease, while leased.
    pub worker: Option<&'a str>,
    /// The lease is live.
    pub leased: bool,
    /// Messages ever completed.
    pub consumed: i64,
    /// Messages pending.
    pub pending: i64,
    /// When the oldest of them was stored.
    pub oldest_at: Option<Timestamp>,
    /// How long ago, seconds.
    pub age_seconds: i64,
}

/// `GET /api/v1/consumer-groups`: a bare array.
pub fn group_list<'a>(lines: impl IntoIterator<Item = GroupLine<'a>>) -> Vec<u8> {
    let mut out = Vec::new();
    json::array(&mut out, lines, |out, line| {
        let state = match line {
            GroupLine { age_seconds, .. } if age_seconds > LAGGING_SECONDS => "Lagging",
            GroupLine { consumed: true, .. } => "Stable",
            _ => "Dead",
        };
        let mut o = Object::open(out);
        o.str("name", line.group)
            .array("topics", [line.queue], json::string)
            .str("queueName", line.queue)
            .int("members", line.members)
            .int("partitionCursors", line.members)
            .int("partitionsWithLag", line.lagging)
            .int("totalLag", line.pending)
            .int("maxTimeLag", line.age_seconds)
            .str("state", state)
            .str("storage", "segments")
            .opt("subscriptionMode", line.mode)
            .opt("subscriptionTimestamp", line.from.map(Timestamp::pg_text).as_deref())
            .opt("subscriptionCreatedAt", line.subscribed_at.map(Timestamp::pg_text).as_deref())
            .bool("conflation", line.conflation);
        o.close();
    });
    out
}

/// The threshold of `GET /api/v1/consumer-groups/lagging`, seconds.
///
/// # Errors
/// A query that is not UTF-8.
pub fn min_lag_seconds(raw: Option<&str>) -> Result<i64, QueryError> {
    Ok(Query::parse(raw)?.lenient_page("minLagSeconds", MIN_LAG_SECONDS))
}

/// `GET /api/v1/consumer-groups/lagging`: a bare array.
pub fn lagging<'a>(lines: impl IntoIterator<Item = CursorLine<'a>>) -> Vec<u8> {
    let mut out = Vec::new();
    json::array(&mut out, lines, |out, line| {
        let mut o = Object::open(out);
        o.str("consumer_group", line.group)
            .str("queue_name", line.queue)
            .str("partition_name", line.partition)
            .uuid("partition_id", &line.partition_id.0)
            .opt("worker_id", line.worker.filter(|_| line.leased))
            .int("offset_lag", line.pending)
            .int("time_lag_seconds", line.age_seconds)
            .raw("lag_hours", &hundredths(line.age_seconds))
            .opt("oldest_unconsumed_at", line.oldest_at.map(Timestamp::millis_text).as_deref())
            .raw("last_consumed_at", "null");
        o.close();
    });
    out
}

/// Seconds as hours with two digits, rounded.
fn hundredths(seconds: i64) -> String {
    let hundredths = seconds.max(0).saturating_mul(100).saturating_add(1800) / 3600;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// `GET /api/v1/consumer-groups/:group`: an object by queue. Lines of one queue stand together.
pub fn group_detail<'a>(lines: &[CursorLine<'a>]) -> Vec<u8> {
    json::object(|o| {
        for queue in lines.chunk_by(|a, b| a.queue == b.queue) {
            let Some(first) = queue.first() else { continue };
            let out = o.text_key(first.queue);
            let mut detail = Object::open(out);
            detail.bool("conflation", false).array("partitions", queue, |out, line| {
                let mut o = Object::open(out);
                o.str("partition", line.partition)
                    .opt("workerId", line.worker.filter(|_| line.leased))
                    .raw("lastConsumedAt", "null")
                    .int("totalConsumed", line.consumed)
                    .int("offsetLag", line.pending)
                    .int("timeLagSeconds", line.age_seconds)
                    .bool("leaseActive", line.leased);
                o.close();
            });
            detail.close();
        }
    })
}

/// Answer to the deletion of a group, on one queue or everywhere.
pub fn group_deleted(group: &Group, queue: Option<&str>, partitions: u64, registration: bool) -> Vec<u8> {
    json::object(|o| {
        o.bool("success", true).str("consumerGroup", group.as_str());
        if let Some(queue) = queue {
            o.str("queueName", queue);
        }
        o.int("deletedPartitions", i64::try_from(partitions).unwrap_or(i64::MAX))
            .bool("metadataDeleted", registration);
    })
}

/// The body of `POST …/:group/subscription`: the instant, and its text for the echo.
///
/// # Errors
/// No JSON object, no timestamp, or one that cannot be read.
pub fn subscription_from(body: &[u8]) -> Result<(Timestamp, String), BodyError> {
    match parse(body)?.get("subscriptionTimestamp") {
        Some(Value::String(text)) if !text.is_empty() => {
            Ok((stamp("subscriptionTimestamp", text)?, text.clone()))
        }
        None | Some(Value::Null | Value::String(_)) => {
            Err(BodyError::refused("subscriptionTimestamp is required"))
        }
        Some(other) => Err(BodyError::refused(format!(
            "subscriptionTimestamp must be the text of an ISO 8601 timestamp, got {other}"
        ))),
    }
}

/// Answer to a change of the start point.
pub fn subscription_changed(group: &Group, text: &str, rows: u64) -> Vec<u8> {
    json::object(|o| {
        o.bool("success", true)
            .str("consumerGroup", group.as_str())
            .str("newTimestamp", text)
            .int("rowsUpdated", i64::try_from(rows).unwrap_or(i64::MAX));
    })
}

/// Where a seek goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeekTarget {
    /// Behind the newest message.
    End,
    /// Before the oldest retained message.
    Beginning,
    /// An instant.
    At(Timestamp),
    /// The last offset that counts as done.
    Offset(Offset),
}

/// The body of a seek of a whole queue.
///
/// # Errors
/// No JSON object, no target, or one that cannot be read.
pub fn seek_queue(body: &[u8]) -> Result<SeekTarget, BodyError> {
    target(&parse(body)?)
}

/// The body of a seek of one partition; without a body it goes to the end.
///
/// # Errors
/// As [`seek_queue`].
pub fn seek_partition(body: &[u8]) -> Result<SeekTarget, BodyError> {
    if body.is_empty() { Ok(SeekTarget::End) } else { target(&parse(body)?) }
}

fn parse(body: &[u8]) -> Result<Map<String, Value>, BodyError> {
    match serde_json::from_str(body::text(body)?)? {
        Value::Object(map) => Ok(map),
        _ => Err(BodyError::bad("a JSON object is expected")),
    }
}

fn target(body: &Map<String, Value>) -> Result<SeekTarget, BodyError> {
    let given = |key: &str| body.get(key).filter(|value| !value.is_null());
    match given("toEnd") {
        Some(Value::Bool(true)) => return Ok(SeekTarget::End),
        None | Some(Value::Bool(false)) => {}
        Some(other) => return Err(BodyError::refused(format!("toEnd must be true or false, got {other}"))),
    }
    if let Some(value) = given("timestamp") {
        let Value::String(text) = value else {
            return Err(BodyError::refused(format!(
                "timestamp must be the text of an ISO 8601 timestamp, got {value}"
            )));
        };
        return stamp("timestamp", text).map(SeekTarget::At);
    }
    if let Some(value) = given("offset") {
        let offset = value.as_i64().filter(|offset| *offset >= -1).ok_or_else(|| {
            BodyError::refused(format!("offset must be an integer of at least -1, got {value}"))
        })?;
        return Ok(SeekTarget::Offset(offset));
    }
    match given("position").map(|value| (value.as_str(), value)) {
        None => Err(BodyError::refused("Must specify toEnd=true or a timestamp")),
        Some((Some("end" | "latest"), _)) => Ok(SeekTarget::End),
        Some((Some("beginning" | "earliest" | "start"), _)) => Ok(SeekTarget::Beginning),
        Some((_, value)) => Err(BodyError::refused(format!(
            "position must be one of end, latest, beginning, earliest, start, got {value}"
        ))),
    }
}

fn stamp(key: &str, text: &str) -> Result<Timestamp, BodyError> {
    Timestamp::parse(text).map_err(|e| BodyError::refused(format!("{key}: {e}")))
}

/// What was sought, for the answer.
#[derive(Debug, Clone, Copy)]
pub struct SeekLine<'a> {
    /// The group.
    pub group: &'a Group,
    /// The queue.
    pub queue: &'a str,
    /// The partition, when only one was sought.
    pub partition: Option<&'a str>,
    /// Where to.
    pub to: SeekTarget,
}

/// Answer to a seek; `partitions` is the number of cursors set.
pub fn sought(line: SeekLine<'_>, partitions: u64) -> Vec<u8> {
    json::object(|o| {
        o.bool("success", true);
        line.write(o);
        match line.partition {
            Some(_) => o.bool("updated", true),
            None => o.int("partitionsUpdated", i64::try_from(partitions).unwrap_or(i64::MAX)),
        };
    })
}

/// Answer to a seek that found nothing to move.
pub fn seek_refused(line: SeekLine<'_>) -> Vec<u8> {
    let error = match line.partition {
        Some(_) => "Partition not found",
        None => "Queue not found or has no partitions",
    };
    json::object(|o| {
        o.bool("success", false).str("error", error);
        line.write(o);
    })
}

impl SeekLine<'_> {
    fn write(&self, o: &mut Object<'_>) {
        o.str("consumerGroup", self.group.as_str()).str("queueName", self.queue);
        if let Some(partition) = self.partition {
            o.str("partitionName", partition);
        }
        let at = match self.to {
            SeekTarget::At(at) => Some(at.millis_text()),
            _ => None,
        };
        o.bool("seekToEnd", self.to == SeekTarget::End).opt("targetTimestamp", at.as_deref());
        if let SeekTarget::Offset(offset) = self.to {
            o.int("targetOffset", offset);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets() {
        let at = Timestamp::parse("2031-04-05T06:07:08Z").unwrap();
        for (body, wanted) in [
            (r#"{"toEnd":true,"timestamp":"x"}"#, SeekTarget::End),
            (r#"{"toEnd":false,"timestamp":"2031-04-05T06:07:08Z"}"#, SeekTarget::At(at)),
            (r#"{"timestamp":null,"offset":-1}"#, SeekTarget::Offset(-1)),
            (r#"{"position":"latest"}"#, SeekTarget::End),
            (r#"{"position":"start"}"#, SeekTarget::Beginning),
        ] {
            assert_eq!(seek_queue(body.as_bytes()).unwrap(), wanted, "{body}");
        }
        for body in [
            "",
            "{",
            "[]",
            "{}",
            r#"{"toEnd":false}"#,
            r#"{"toEnd":"yes"}"#,
            r#"{"timestamp":"soon"}"#,
            r#"{"timestamp":5}"#,
            r#"{"offset":-2}"#,
            r#"{"offset":1.5}"#,
            r#"{"position":"middle"}"#,
        ] {
            assert!(seek_queue(body.as_bytes()).is_err(), "{body}");
        }
        assert_eq!(seek_partition(b"").unwrap(), SeekTarget::End);
        assert!(seek_partition(b"{}").is_err());
    }

    #[test]
    fn subscriptions() {
        assert_eq!(subscription_from(br#"{"subscriptionTimestamp":"2031-04-05"}"#).unwrap().1, "2031-04-05");
        for body in ["", "{}", r#"{"subscriptionTimestamp":""}"#, r#"{"subscriptionTimestamp":null}"#] {
            assert!(subscription_from(body.as_bytes()).is_err(), "{body}");
        }
        let refused = subscription_from(br#"{"subscriptionTimestamp":"soon"}"#).unwrap_err().to_string();
        assert!(refused.contains("subscriptionTimestamp") && refused.contains("soon"), "{refused}");
    }

    #[test]
    fn hours() {
        for (seconds, hours) in [(0, "0.00"), (36, "0.01"), (7300, "2.03"), (-5, "0.00")] {
            assert_eq!(hundredths(seconds), hours);
        }
    }
}
