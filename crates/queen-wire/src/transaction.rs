//! `POST /api/v1/transaction`.

use queen_types::{
    AckStatus, Group, LeaseId, MessageId, PartitionId, PartitionName, QueueName, TransactionId, Uuid,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::ack;
use crate::body::{self, BodyError, Obj, Text};
use crate::json;
use crate::push::Names;

/// Operation words of the riders; inside `operations` they get a hint.
const KV_WORDS: [&str; 8] = ["kv", "get", "getMany", "getPrefix", "put", "putIfAbsent", "delete", "incr"];
const TIMER_WORDS: [&str; 4] = ["timer", "timers", "schedule", "cancel"];

/// A parsed transaction.
#[derive(Debug)]
pub struct TransactionRequest<'a> {
    /// Pushes and acks, flat, in request order.
    pub operations: Vec<TxnOperation<'a>>,
    /// Leases that the caller believes it holds.
    pub required_leases: Vec<LeaseId>,
    /// How many acks carried a status word that nobody knows.
    pub unknown_statuses: usize,
}

/// One operation.
#[derive(Debug)]
pub enum TxnOperation<'a> {
    /// Append a message.
    Push {
        /// Its queue.
        queue: QueueName,
        /// Its partition.
        partition: PartitionName,
        /// Its key; absent and empty both mean the message id.
        transaction_id: Option<TransactionId>,
        /// One JSON value, a slice of the body; `None` stands for `{}`.
        payload: Option<&'a str>,
        /// Trace, when it is a UUID.
        trace_id: Option<Uuid>,
    },
    /// Settle a message.
    Ack {
        /// The group.
        group: Group,
        /// The partition.
        partition: PartitionId,
        /// Key of the message.
        transaction_id: String,
        /// What became of it.
        status: AckStatus,
        /// Its lease, when the operation names one.
        lease: Option<LeaseId>,
        /// Text for the dead-letter record.
        error: Option<String>,
    },
}

/// Why a transaction was refused before the database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransactionRequestError {
    /// Not JSON: the plain error body.
    #[error(transparent)]
    NotJson(BodyError),
    /// `bad_request` in the shape of a transaction answer.
    #[error("{0}")]
    Refused(String),
}

#[derive(Deserialize)]
struct RawTransaction<'a> {
    #[serde(borrow, default)]
    operations: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default, rename = "requiredLeases")]
    required_leases: Option<Vec<Text<'a>>>,
    #[serde(borrow, default)]
    kv: Option<&'a RawValue>,
    #[serde(borrow, default)]
    timers: Option<&'a RawValue>,
}

/// Keys of both kinds of operation: an ack, or a push with its item's keys directly on it.
#[derive(Deserialize)]
struct RawOperation<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    items: Option<Vec<Obj<RawItem<'a>>>>,
    #[serde(borrow, default)]
    queue: Option<Text<'a>>,
    #[serde(borrow, default)]
    partition: Option<Text<'a>>,
    #[serde(borrow, default, rename = "transactionId")]
    transaction_id: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "body::present")]
    payload: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "body::present")]
    data: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "traceId")]
    trace_id: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "partitionId")]
    partition_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    status: Option<Text<'a>>,
    #[serde(borrow, default, rename = "leaseId")]
    lease_id: Option<Text<'a>>,
    #[serde(borrow, default, rename = "consumerGroup")]
    group: Option<Text<'a>>,
    #[serde(borrow, default)]
    error: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct RawItem<'a> {
    #[serde(borrow, default)]
    queue: Option<Text<'a>>,
    #[serde(borrow, default)]
    partition: Option<Text<'a>>,
    #[serde(borrow, default, rename = "transactionId")]
    transaction_id: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "body::present")]
    payload: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "body::present")]
    data: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "traceId")]
    trace_id: Option<&'a RawValue>,
}

impl<'a> TransactionRequest<'a> {
    /// Parses a body and checks every name and id in it.
    ///
    /// # Errors
    /// [`TransactionRequestError::NotJson`], or a refusal that names the operation.
    pub fn parse(body: &'a [u8]) -> Result<TransactionRequest<'a>, TransactionRequestError> {
        use TransactionRequestError::{NotJson, Refused};
        let text = body::text(body).map_err(NotJson)?;
        // Well-formedness first: what follows are refusals in the shape of a transaction answer.
        let whole: &RawValue = serde_json::from_str(text).map_err(|e| NotJson(e.into()))?;
        let raw: Obj<RawTransaction<'a>> =
            serde_json::from_str(whole.get()).map_err(|e| Refused(e.to_string()))?;
        build(raw.0).map_err(Refused)
    }
}

fn build(raw: RawTransaction<'_>) -> Result<TransactionRequest<'_>, String> {
    rider("kv", "key/value", raw.kv)?;
    rider("timers", "timer", raw.timers)?;
    if raw.operations.is_none() && raw.kv.is_none() && raw.timers.is_none() {
        return Err("operations is required".to_owned());
    }
    let mut names = Names::default();
    let mut request = TransactionRequest {
        operations: Vec::new(),
        required_leases: raw
            .required_leases
            .unwrap_or_default()
            .into_iter()
            .map(|t| LeaseId::from_client(&body::storable(t.0)))
            .collect(),
        unknown_statuses: 0,
    };
    for (index, operation) in raw.operations.unwrap_or_default().into_iter().enumerate() {
        add(&mut request, &mut names, operation).map_err(|e| format!("operation {index}: {e}"))?;
    }
    Ok(request)
}

/// Riders are checked for shape; one with operations in it is refused, so that nobody believes it was done.
fn rider(key: &str, what: &str, value: Option<&RawValue>) -> Result<(), String> {
    let Some(value) = value else { return Ok(()) };
    let inner = value
        .get()
        .strip_prefix('[')
        .and_then(|v| v.strip_suffix(']'))
        .ok_or_else(|| format!("{key} must be an array"))?;
    if inner.trim_ascii().is_empty() {
        return Ok(());
    }
    Err(format!("{what} operations inside a transaction are not supported by this build"))
}

fn add<'a>(request: &mut TransactionRequest<'a>, names: &mut Names, raw: &'a RawValue) -> Result<(), String> {
    let Obj(raw): Obj<RawOperation<'a>> = serde_json::from_str(raw.get()).map_err(|e| e.to_string())?;
    match raw.kind.as_ref().map(Text::as_str) {
        Some("push") => push(request, names, raw),
        Some("ack") => ack_operation(request, raw),
        Some(word) if KV_WORDS.contains(&word) => {
            Err(format!("{word:?} is a key/value operation and belongs in the top-level array \"kv\""))
        }
        Some(word) if TIMER_WORDS.contains(&word) => {
            Err(format!("{word:?} is a timer operation and belongs in the top-level array \"timers\""))
        }
        Some(word) => Err(format!(
            "a transaction supports only push and ack operations, got {:?}",
            word.chars().take(64).collect::<String>()
        )),
        None => Err("type is required: a transaction supports push and ack operations".to_owned()),
    }
}

fn push<'a>(
    request: &mut TransactionRequest<'a>,
    names: &mut Names,
    raw: RawOperation<'a>,
) -> Result<(), String> {
    let items = raw.items.unwrap_or_else(|| {
        vec![Obj(RawItem {
            queue: raw.queue,
            partition: raw.partition,
            transaction_id: raw.transaction_id,
            payload: raw.payload,
            data: raw.data,
            trace_id: raw.trace_id,
        })]
    });
    for Obj(item) in items {
        let queue = item.queue.ok_or("queue is required")?;
        let key = item.transaction_id.filter(|t| !t.as_str().is_empty());
        request.operations.push(TxnOperation::Push {
            queue: names.queue(queue).map_err(|e| e.to_string())?,
            partition: names.partition(item.partition).map_err(|e| e.to_string())?,
            transaction_id: key.map(|t| TransactionId::new(t.0)).transpose().map_err(|e| e.to_string())?,
            payload: item.payload.or(item.data).map(RawValue::get),
            trace_id: item.trace_id.and_then(|raw| {
                serde_json::from_str::<Text<'_>>(raw.get())
                    .ok()
                    .and_then(|t| Uuid::try_parse(t.as_str()).ok())
            }),
        });
    }
    Ok(())
}

fn ack_operation(request: &mut TransactionRequest<'_>, raw: RawOperation<'_>) -> Result<(), String> {
    let partition = match ack::partition(raw.partition_id) {
        Some(Ok(id)) => id,
        Some(Err(_)) => return Err("invalid partitionId".to_owned()),
        None => return Err("partitionId is required".to_owned()),
    };
    let (status, unknown) = AckStatus::parse(raw.status.as_ref().map(Text::as_str));
    request.unknown_statuses += usize::from(unknown);
    request.operations.push(TxnOperation::Ack {
        group: ack::group(raw.group)?,
        partition,
        transaction_id: raw.transaction_id.map(|t| t.0.into_owned()).unwrap_or_default(),
        status,
        lease: ack::lease(raw.lease_id, None),
        error: raw.error.map(|e| body::storable(e.0)),
    });
    Ok(())
}

/// What the answer tells of one committed operation.
#[derive(Debug, Clone, Copy)]
pub enum TxnLine<'a> {
    /// A push.
    Push {
        /// The effective key.
        transaction_id: &'a str,
        /// The message's id.
        message_id: MessageId,
        /// Its queue.
        queue: &'a str,
        /// Repeats an earlier item of the same transaction.
        duplicate: bool,
    },
    /// An ack.
    Ack {
        /// The key as sent.
        transaction_id: &'a str,
        /// Dead-lettered by this transaction.
        dlq: bool,
    },
}

/// The answer to a committed transaction.
pub fn transaction_committed<'a>(id: &Uuid, lines: impl IntoIterator<Item = TxnLine<'a>>) -> Vec<u8> {
    let mut index = 0;
    json::object(|o| {
        o.uuid("transactionId", id).bool("success", true).array("results", lines, |out, line| {
            let mut o = json::Object::open(out);
            o.int("index", index);
            index += 1;
            match line {
                TxnLine::Push { transaction_id, message_id, queue, duplicate } => {
                    o.str("type", "push").bool("success", true).str("transactionId", transaction_id);
                    o.uuid("messageId", &message_id.0).str("queueName", queue);
                    if duplicate {
                        o.bool("duplicate", true);
                    }
                }
                TxnLine::Ack { transaction_id, dlq } => {
                    o.str("type", "ack").bool("success", true).str("transactionId", transaction_id);
                    o.raw("error", "null").bool("dlq", dlq);
                }
            }
            o.close();
        });
    })
}

/// The answer to a transaction of which nothing is visible. `duplicates` tells, for the reason `duplicate`, which
/// operations were stored before and under which id.
pub fn transaction_refused(
    id: &Uuid,
    reason: &str,
    error: &str,
    duplicates: &[(usize, MessageId)],
) -> Vec<u8> {
    json::object(|o| {
        o.uuid("transactionId", id).bool("success", false).str("reason", reason).str("error", error);
        if !duplicates.is_empty() {
            o.array("duplicates", duplicates, |out, (index, message_id)| {
                let mut o = json::Object::open(out);
                o.int("index", i64::try_from(*index).unwrap_or(i64::MAX)).uuid("messageId", &message_id.0);
                o.close();
            });
        }
        o.raw("results", "[]");
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> String {
        match TransactionRequest::parse(body.as_bytes()).unwrap_err() {
            TransactionRequestError::Refused(text) => text,
            TransactionRequestError::NotJson(e) => panic!("{e}"),
        }
    }

    #[test]
    fn flat_and_nested_pushes_keep_their_bytes() {
        let body = br#"{"operations":[{"type":"push","queue":"q","payload":{"z":1,"a":2.50},"transactionId":"f"},
            {"type":"push","items":[{"queue":"q","data":[ 1 ],"transactionId":""},{"queue":"r","payload":null,"data":1}]},
            {"type":"push","queue":"q","traceId":"nope"}]}"#;
        let request = TransactionRequest::parse(body).unwrap();
        let pushes: Vec<_> = request
            .operations
            .iter()
            .map(|op| match op {
                TxnOperation::Push { payload, transaction_id, trace_id, .. } => {
                    (*payload, transaction_id.as_ref().map(|t| t.as_str()), *trace_id)
                }
                TxnOperation::Ack { .. } => panic!("no ack"),
            })
            .collect();
        assert_eq!(
            pushes,
            [
                (Some(r#"{"z":1,"a":2.50}"#), Some("f"), None),
                (Some("[ 1 ]"), None, None),
                (Some("null"), None, None),
                (None, None, None)
            ]
        );
    }

    #[test]
    fn acks_and_leases() {
        let body = br#"{"operations":[{"type":"ack","transactionId":"t","partitionId":"5f0c1f7e-6d0b-4b8e-9f0a-0c2b7d1e4a10",
            "status":"nack","consumerGroup":"","leaseId":null,"error":null}],"requiredLeases":["a","b"],"kv":[ ],"timers":null}"#;
        let request = TransactionRequest::parse(body).unwrap();
        assert_eq!(request.required_leases.len(), 2);
        assert_eq!(request.unknown_statuses, 1);
        assert!(matches!(&request.operations[0],
            TxnOperation::Ack { group, status: AckStatus::Failed, lease: None, error: None, .. } if group.is_queue_mode()));
    }

    #[test]
    fn refusals() {
        for (body, part) in [
            ("[]", "a JSON object"),
            ("{}", "operations is required"),
            (r#"{"operations":{}}"#, "expected a sequence"),
            (r#"{"operations":[1]}"#, "operation 0: invalid type"),
            (r#"{"operations":[{}]}"#, "type is required"),
            (r#"{"operations":[{"type":"pop"}]}"#, "supports only push and ack operations, got \"pop\""),
            (r#"{"operations":[{"type":"put"}]}"#, "\"kv\""),
            (r#"{"operations":[{"type":"schedule"}]}"#, "\"timers\""),
            (r#"{"operations":[{"type":"push"}]}"#, "queue is required"),
            (r#"{"operations":[{"type":"push","queue":""}]}"#, "queue name must be"),
            (r#"{"operations":[{"type":"push","queue":"a\u0000"}]}"#, "control characters"),
            (r#"{"operations":[{"type":"ack","transactionId":"x"}]}"#, "partitionId is required"),
            (r#"{"operations":[{"type":"ack","partitionId":"x"}]}"#, "invalid partitionId"),
            (r#"{"operations":[],"requiredLeases":[1]}"#, "a string"),
            (r#"{"operations":[],"kv":{}}"#, "kv must be an array"),
            (r#"{"operations":[],"kv":[{"op":"get"}]}"#, "not supported by this build"),
            (r#"{"timers":[{}]}"#, "not supported by this build"),
        ] {
            let text = refused(body);
            assert!(text.contains(part), "{body}: {text}");
        }
        assert!(matches!(
            TransactionRequest::parse(b"{").unwrap_err(),
            TransactionRequestError::NotJson(e) if e.to_string().starts_with("bad body: ")
        ));
    }
}
