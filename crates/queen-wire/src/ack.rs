//! `POST /api/v1/ack` and `POST /api/v1/ack/batch`.

use std::borrow::Cow;

use queen_types::{AckStatus, Group, LeaseId, PartitionId, Uuid};
use serde::Deserialize;

use crate::body::{self, BodyError, Obj, Text};
use crate::json;

/// A parsed acknowledgment call.
#[derive(Debug)]
pub struct AckRequest<'a> {
    /// The group, queue mode when absent.
    pub group: Group,
    /// In request order.
    pub acks: Vec<Ack<'a>>,
    /// How many carried a status word that nobody knows; they count as failed.
    pub unknown_statuses: usize,
}

/// One acknowledgment.
#[derive(Debug)]
pub struct Ack<'a> {
    /// Key of the message; absent is the empty key.
    pub transaction_id: Cow<'a, str>,
    /// The partition: absent, valid, or the text that is no UUID.
    pub partition: Option<Result<PartitionId, String>>,
    /// What became of the message.
    pub status: AckStatus,
    /// The lease, when one was sent.
    pub lease: Option<LeaseId>,
    /// Text for the dead-letter record.
    pub error: Option<String>,
}

#[derive(Deserialize)]
struct RawSingle<'a> {
    #[serde(borrow, default, rename = "consumerGroup")]
    group: Option<Text<'a>>,
    #[serde(borrow, default, rename = "transactionId")]
    transaction_id: Option<Text<'a>>,
    #[serde(borrow, default, rename = "partitionId")]
    partition_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    status: Option<Text<'a>>,
    #[serde(borrow, default, rename = "leaseId")]
    lease_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    error: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct RawBatch<'a> {
    #[serde(borrow, default, rename = "consumerGroup")]
    group: Option<Text<'a>>,
    #[serde(borrow, default)]
    acknowledgments: Vec<Obj<RawItem<'a>>>,
}

/// An item of a batch. The group stands at the top only; here it would be an unknown key.
#[derive(Deserialize)]
struct RawItem<'a> {
    #[serde(borrow, default, rename = "transactionId")]
    transaction_id: Option<Text<'a>>,
    #[serde(borrow, default, rename = "partitionId")]
    partition_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    status: Option<Text<'a>>,
    #[serde(borrow, default, rename = "leaseId")]
    lease_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    error: Option<Text<'a>>,
}

impl<'a> AckRequest<'a> {
    /// Parses the body of a single ack.
    ///
    /// # Errors
    /// Not JSON, a value of the wrong type, or a group out of bounds.
    pub fn parse_single(body: &'a [u8]) -> Result<AckRequest<'a>, BodyError> {
        let raw: RawSingle<'a> = body::object(body)?;
        let item = RawItem {
            transaction_id: raw.transaction_id,
            partition_id: raw.partition_id,
            status: raw.status,
            lease_id: raw.lease_id,
            error: raw.error,
        };
        AckRequest::of(raw.group, vec![Obj(item)])
    }

    /// Parses the body of a batch; without `acknowledgments` it is an empty one.
    ///
    /// # Errors
    /// Not JSON, a value of the wrong type, or a group out of bounds.
    pub fn parse_batch(body: &'a [u8]) -> Result<AckRequest<'a>, BodyError> {
        let raw: RawBatch<'a> = body::object(body)?;
        AckRequest::of(raw.group, raw.acknowledgments)
    }

    fn of(group: Option<Text<'a>>, items: Vec<Obj<RawItem<'a>>>) -> Result<AckRequest<'a>, BodyError> {
        let mut request = AckRequest {
            group: self::group(group).map_err(BodyError::refused)?,
            acks: Vec::with_capacity(items.len()),
            unknown_statuses: 0,
        };
        let mut last_lease: Option<LeaseId> = None;
        for Obj(item) in items {
            let (status, unknown) = AckStatus::parse(item.status.as_ref().map(Text::as_str));
            request.unknown_statuses += usize::from(unknown);
            let lease = lease(item.lease_id, last_lease.as_ref());
            if lease.is_some() {
                last_lease.clone_from(&lease);
            }
            request.acks.push(Ack {
                transaction_id: item.transaction_id.map_or(Cow::Borrowed(""), |t| t.0),
                partition: partition(item.partition_id),
                status,
                lease,
                error: item.error.map(|e| body::storable(e.0)),
            });
        }
        Ok(request)
    }
}

/// The group of an acknowledgment: absent and empty mean queue mode.
pub(crate) fn group(text: Option<Text<'_>>) -> Result<Group, String> {
    match text {
        None => Ok(Group::queue_mode()),
        Some(text) if text.as_str().is_empty() => Ok(Group::queue_mode()),
        Some(text) => Group::new(text.0).map_err(|e| e.to_string()),
    }
}

/// The partition of an acknowledgment: absent and empty are the same.
pub(crate) fn partition(text: Option<Text<'_>>) -> Option<Result<PartitionId, String>> {
    let text = text.filter(|t| !t.as_str().is_empty())?;
    Some(match Uuid::try_parse(text.as_str()) {
        Ok(id) => Ok(PartitionId(id)),
        Err(_) => Err(text.0.into_owned()),
    })
}

/// The lease of an acknowledgment: absent and empty are the same. `last` is handed out again when it is equal.
pub(crate) fn lease(text: Option<Text<'_>>, last: Option<&LeaseId>) -> Option<LeaseId> {
    let text = text.filter(|t| !t.as_str().is_empty())?;
    match last {
        Some(last) if last.as_str() == text.as_str() => Some(last.clone()),
        _ => Some(LeaseId::from_client(&body::storable(text.0))),
    }
}

/// What the answer tells of one acknowledgment.
#[derive(Debug, Clone, Copy, Default)]
pub struct AckLine<'a> {
    /// The key as sent.
    pub transaction_id: &'a str,
    /// Whether it took effect.
    pub success: bool,
    /// Why not.
    pub error: Option<&'a str>,
    /// The lease is gone.
    pub lease_released: bool,
    /// Dead-lettered by this call.
    pub dlq: bool,
    /// Nothing changed.
    pub noop: bool,
    /// Will be delivered again although it was completed.
    pub redelivers: bool,
    /// Given up without a dead letter.
    pub dropped: bool,
}

/// The answer to an ack, an array in request order.
pub fn ack_answer<'a>(lines: impl ExactSizeIterator<Item = AckLine<'a>>) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 + lines.len() * 160);
    let mut index = 0;
    json::array(&mut out, lines, |out, line| {
        json::raw(out, "{\"index\":");
        json::count(out, index);
        index += 1;
        json::raw(out, ",\"transactionId\":");
        json::string(out, line.transaction_id);
        json::raw(out, ",\"success\":");
        json::boolean(out, line.success);
        json::raw(out, ",\"error\":");
        json::optional(out, line.error);
        json::raw(out, ",\"leaseReleased\":");
        json::boolean(out, line.lease_released);
        json::raw(out, ",\"dlq\":");
        json::boolean(out, line.dlq);
        json::raw(out, ",\"noop\":");
        json::boolean(out, line.noop);
        if line.redelivers {
            json::raw(out, ",\"redelivers\":true");
        }
        if line.dropped {
            json::raw(out, ",\"dropped\":true");
        }
        out.push(b'}');
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_accepted_everywhere() {
        let body = br#"{"transactionId":null,"partitionId":null,"status":null,"leaseId":null,"consumerGroup":null,"error":null}"#;
        let request = AckRequest::parse_single(body).unwrap();
        let ack = &request.acks[0];
        assert_eq!(ack.transaction_id, "");
        assert_eq!(ack.status, AckStatus::Completed);
        assert!(request.group.is_queue_mode());
        assert!(ack.partition.is_none() && ack.lease.is_none() && ack.error.is_none());
    }

    #[test]
    fn a_batch_has_its_group_at_the_top() {
        let body = br#"{"consumerGroup":"g","acknowledgments":[
            {"transactionId":"a","partitionId":"5f0c1f7e-6d0b-4b8e-9f0a-0c2b7d1e4a10","leaseId":"L","consumerGroup":5},
            {"transactionId":"b","partitionId":"nope","leaseId":"L","status":"COMPLETED","error":"a\u0000b"}]}"#;
        let request = AckRequest::parse_batch(body).unwrap();
        assert_eq!(request.group.as_str(), "g");
        assert_eq!(request.unknown_statuses, 1);
        let [a, b] = &request.acks[..] else { panic!("two acks") };
        assert!(matches!(a.partition, Some(Ok(_))));
        assert_eq!(b.partition, Some(Err("nope".to_owned())));
        assert_eq!(b.status, AckStatus::Failed);
        assert_eq!(b.error.as_deref(), Some("a\u{fffd}b"));
        assert_eq!(a.lease.as_ref().unwrap().as_str().as_ptr(), b.lease.as_ref().unwrap().as_str().as_ptr());
    }

    #[test]
    fn wrong_shapes() {
        assert!(AckRequest::parse_batch(b"{}").unwrap().acks.is_empty());
        for body in [
            "",
            "{",
            "nope",
            "[]",
            r#"{"acknowledgments":null}"#,
            r#"{"acknowledgments":{}}"#,
            r#"{"acknowledgments":[5]}"#,
            r#"{"acknowledgments":[{"transactionId":5}]}"#,
        ] {
            assert!(AckRequest::parse_batch(body.as_bytes()).is_err(), "{body}");
        }
        for body in ["[]", r#"{"transactionId":5}"#, r#"{"status":true}"#, r#"{"error":"a","error":"b"}"#] {
            assert!(AckRequest::parse_single(body.as_bytes()).is_err(), "{body}");
        }
    }
}
