//! Trace events: notes of applications about messages.

use queen_types::{Group, PartitionId, Timestamp, Uuid};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::body::{self, BodyError, Text};
use crate::json::{self, Object};
use crate::query::{Query, QueryError};

/// Longest key of a message that can be noted about, characters: the width of its column.
const KEY_CHARS_MAX: usize = 255;
/// Longest event type, characters.
const TYPE_CHARS_MAX: usize = 100;
/// Longest trace name, bytes: it has to fit an index tuple.
const NAME_BYTES_MAX: usize = 1024;
/// Most names of one event.
const NAMES_MAX: usize = 100;
/// Who writes trace events, as the answers say.
const WORKER: &str = "seg-rust";

/// A parsed trace event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceRequest<'a> {
    /// Partition of the message.
    pub partition: PartitionId,
    /// Its key.
    pub transaction_id: String,
    /// Who says so.
    pub group: String,
    /// What kind of event.
    pub event_type: String,
    /// One JSON value, as it was sent.
    pub data: &'a str,
    /// Names to find it by.
    pub names: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(borrow)]
    transaction_id: Option<Text<'a>>,
    #[serde(borrow)]
    partition_id: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "body::present")]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    consumer_group: Option<Text<'a>>,
    #[serde(borrow)]
    event_type: Option<Text<'a>>,
    trace_names: Option<Names>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Names {
    One(String),
    Many(Vec<String>),
}

impl TraceRequest<'_> {
    /// Parses a body.
    ///
    /// # Errors
    /// No JSON object, a missing key, a partition id that is no UUID, or a text beyond its bound.
    pub fn parse(body: &[u8]) -> Result<TraceRequest<'_>, BodyError> {
        let body: Body<'_> = body::object(body)?;
        let (Some(_), Some(partition)) = (&body.transaction_id, &body.partition_id) else {
            return Err(BodyError::refused("transactionId and partitionId are required"));
        };
        let Some(data) = body.data.filter(|data| data.get() != "null") else {
            return Err(BodyError::refused("data is required"));
        };
        let partition = Uuid::try_parse(partition.as_str()).map_err(|_| {
            let shown: String = partition.as_str().chars().take(64).collect();
            BodyError::refused(format!("invalid partitionId {shown:?}: it must be a UUID"))
        })?;
        let names = match body.trace_names {
            None => Vec::new(),
            Some(Names::One(name)) => vec![name],
            Some(Names::Many(names)) => names,
        };
        if names.len() > NAMES_MAX {
            return Err(BodyError::refused(format!(
                "traceNames must be at most {NAMES_MAX} names, got {}",
                names.len()
            )));
        }
        if let Some(long) = names.iter().find(|name| name.is_empty() || name.len() > NAME_BYTES_MAX) {
            return Err(BodyError::refused(format!(
                "a trace name must be 1..{NAME_BYTES_MAX} bytes, got {}",
                long.len()
            )));
        }
        let group = text("consumerGroup", body.consumer_group, KEY_CHARS_MAX)?;
        Ok(TraceRequest {
            partition: PartitionId(partition),
            transaction_id: text("transactionId", body.transaction_id, KEY_CHARS_MAX)?.unwrap_or_default(),
            group: group.unwrap_or_else(|| Group::QUEUE_MODE.to_owned()),
            event_type: text("eventType", body.event_type, TYPE_CHARS_MAX)?
                .unwrap_or_else(|| "info".to_owned()),
            data: data.get(),
            names: names.into_iter().map(|name| body::storable(name.into())).collect(),
        })
    }
}

/// A text of a bounded column.
fn text(key: &str, value: Option<Text<'_>>, max: usize) -> Result<Option<String>, BodyError> {
    let Some(Text(value)) = value else { return Ok(None) };
    let chars = value.chars().count();
    if chars > max {
        return Err(BodyError::refused(format!("{key} must be at most {max} characters, got {chars}")));
    }
    Ok(Some(body::storable(value)))
}

/// Answer to a trace event.
pub fn traced(id: &Uuid) -> Vec<u8> {
    json::object(|o| {
        o.bool("success", true).uuid("traceId", id);
    })
}

/// `limit` and `offset` of a listing of traces by name, or of names.
///
/// # Errors
/// A query that is not UTF-8.
pub fn trace_page(raw: Option<&str>, limit: i64) -> Result<(i64, i64), QueryError> {
    let query = Query::parse(raw)?;
    Ok((query.lenient_page("limit", limit), query.lenient_page("offset", 0)))
}

/// A trace event.
#[derive(Debug, Clone, Copy)]
pub struct TraceLine<'a> {
    /// Its id.
    pub id: Uuid,
    /// What kind of event.
    pub event_type: &'a str,
    /// One JSON value; empty stands for `null`.
    pub data: &'a [u8],
    /// Who said so.
    pub group: &'a str,
    /// When.
    pub created_at: Timestamp,
    /// Its names.
    pub names: &'a [String],
    /// Key of the message.
    pub transaction_id: &'a str,
    /// Partition of the message.
    pub partition: PartitionId,
    /// Queue and partition by name, while they exist.
    pub place: Option<(&'a str, &'a str)>,
}

impl TraceLine<'_> {
    fn write(&self, o: &mut Object<'_>) {
        o.uuid("id", &self.id).str("event_type", self.event_type);
        let data = if self.data.is_empty() { b"null" } else { self.data };
        o.key("data").extend_from_slice(data);
        o.str("consumer_group", self.group)
            .str("worker_id", WORKER)
            .str("created_at", &self.created_at.millis_text())
            .array("trace_names", self.names, |out, name| json::string(out, name));
    }
}

/// The events of one message.
pub fn traces_of_message<'a>(lines: impl IntoIterator<Item = TraceLine<'a>>) -> Vec<u8> {
    json::object(|o| {
        o.array("traces", lines, |out, line| {
            let mut o = Object::open(out);
            line.write(&mut o);
            o.close();
        });
    })
}

/// The events of one name.
pub fn traces_by_name<'a>(
    lines: impl IntoIterator<Item = TraceLine<'a>>,
    total: i64,
    limit: i64,
    offset: i64,
) -> Vec<u8> {
    json::object(|o| {
        o.array("traces", lines, |out, line| {
            let mut o = Object::open(out);
            line.write(&mut o);
            o.str("transaction_id", line.transaction_id)
                .uuid("partition_id", &line.partition.0)
                .opt("queue_name", line.place.map(|(queue, _)| queue))
                .opt("partition_name", line.place.map(|(_, partition)| partition))
                .raw("message_payload", "null");
            o.close();
        });
        page(o, total, limit, offset);
    })
}

/// A name of events.
#[derive(Debug, Clone, Copy)]
pub struct TraceNameLine<'a> {
    /// The name.
    pub name: &'a str,
    /// Events with it.
    pub traces: i64,
    /// Messages that they are about.
    pub messages: i64,
    /// When the newest was written.
    pub last_seen: Timestamp,
}

/// The names of events.
pub fn trace_names<'a>(
    lines: impl IntoIterator<Item = TraceNameLine<'a>>,
    total: i64,
    limit: i64,
    offset: i64,
) -> Vec<u8> {
    json::object(|o| {
        o.array("trace_names", lines, |out, line| {
            let mut o = Object::open(out);
            o.str("trace_name", line.name)
                .int("trace_count", line.traces)
                .int("message_count", line.messages)
                .str("last_seen", &line.last_seen.millis_text());
            o.close();
        });
        page(o, total, limit, offset);
    })
}

fn page(o: &mut Object<'_>, total: i64, limit: i64, offset: i64) {
    o.int("total", total).object("pagination", |o| {
        o.int("limit", limit).int("offset", offset);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "5f0c1f7e-6d0b-4b8e-9f0a-0c2b7d1e4a10";

    fn parse(rest: &str) -> Result<TraceRequest<'static>, String> {
        let body = format!(r#"{{"transactionId":"t","partitionId":"{ID}"{rest}}}"#);
        TraceRequest::parse(Box::leak(body.into_boxed_str()).as_bytes()).map_err(|e| e.to_string())
    }

    #[test]
    fn defaults_and_shapes() {
        let got = parse(r#","data":{"s":1.10}"#).unwrap();
        assert_eq!((got.group.as_str(), got.event_type.as_str()), ("__QUEUE_MODE__", "info"));
        assert_eq!((got.data, got.names.len()), (r#"{"s":1.10}"#, 0));
        let got =
            parse(r#","data":0,"traceNames":"a","consumerGroup":null,"eventType":"x"#.to_owned().as_str());
        assert!(got.is_err(), "broken JSON");
        assert_eq!(parse(r#","data":0,"traceNames":"a""#).unwrap().names, ["a"]);
        assert_eq!(parse(r#","data":[],"traceNames":["a","b"]"#).unwrap().names, ["a", "b"]);
        assert_eq!(parse(r#","data":[],"traceNames":null"#).unwrap().names.len(), 0);
    }

    #[test]
    fn refusals() {
        assert_eq!(parse("").unwrap_err(), "data is required");
        assert_eq!(parse(r#","data":null"#).unwrap_err(), "data is required");
        let required = "transactionId and partitionId are required";
        assert_eq!(TraceRequest::parse(br#"{"data":1}"#).unwrap_err().to_string(), required);
        let bad = TraceRequest::parse(br#"{"data":1,"transactionId":"t","partitionId":"zz"}"#);
        assert!(bad.unwrap_err().to_string().contains("UUID"));
        let long = "x".repeat(300);
        assert!(parse(&format!(r#","data":1,"eventType":"{long}""#)).unwrap_err().contains("100"));
        assert!(parse(r#","data":1,"traceNames":[""]"#).unwrap_err().contains("1..1024"));
        assert!(parse(r#","data":1,"traceNames":7"#).is_err());
    }
}
