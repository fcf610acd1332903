//! One accepted message, and its record: a JSON object. The payload is the client's text, byte for byte.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use queen_types::{MessageId, PartitionName, QueueName, TenantId, Timestamp, TransactionId, Uuid};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A push that was accepted and not stored yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Owner of the queue.
    pub tenant: TenantId,
    /// Queue.
    pub queue: QueueName,
    /// Partition.
    pub partition: PartitionName,
    /// Deduplication key.
    pub transaction_id: TransactionId,
    /// The id that was answered; records of other products have none.
    pub message_id: Option<MessageId>,
    /// Trace id.
    pub trace_id: Option<Uuid>,
    /// Authenticated producer.
    pub producer_sub: Option<Arc<str>>,
    /// The payload is an encryption envelope.
    pub encrypted: bool,
    /// When it was accepted.
    pub accepted_at: Option<Timestamp>,
    /// One JSON value.
    pub payload: Bytes,
}

/// A record that is no event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the record is no event: {0}")]
pub struct Unreadable(String);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    #[serde(borrow)]
    queue: Cow<'a, str>,
    #[serde(borrow)]
    partition: Cow<'a, str>,
    /// Left out for the default tenant, as every reader of these files expects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tenant: Option<Uuid>,
    #[serde(borrow)]
    transaction_id: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    producer_sub: Option<Cow<'a, str>>,
    #[serde(default)]
    encrypted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message_id: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace_id: Option<Uuid>,
    /// Microseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    accepted_at: Option<i64>,
    #[serde(borrow)]
    payload: &'a RawValue,
}

impl Event {
    /// The record's text.
    ///
    /// # Errors
    /// The payload is not one JSON value.
    pub fn encode(&self) -> Result<Vec<u8>, Unreadable> {
        let payload = std::str::from_utf8(&self.payload).map_err(|e| Unreadable(e.to_string()))?;
        let record = Record {
            queue: self.queue.as_str().into(),
            partition: self.partition.as_str().into(),
            tenant: (self.tenant != TenantId::DEFAULT).then_some(self.tenant.0),
            transaction_id: self.transaction_id.as_str().into(),
            producer_sub: self.producer_sub.as_deref().map(Cow::Borrowed),
            encrypted: self.encrypted,
            message_id: self.message_id.map(|id| id.0),
            trace_id: self.trace_id,
            accepted_at: self.accepted_at.map(|at| at.0),
            payload: serde_json::from_str(payload).map_err(|e| Unreadable(e.to_string()))?,
        };
        serde_json::to_vec(&record).map_err(|e| Unreadable(e.to_string()))
    }

    /// Reads a record's text.
    ///
    /// # Errors
    /// It is not JSON, or no event, or one of its names is none.
    pub fn decode(body: &[u8]) -> Result<Event, Unreadable> {
        let record: Record<'_> = serde_json::from_slice(body).map_err(|e| Unreadable(e.to_string()))?;
        let name = |error: queen_types::NameError| Unreadable(error.to_string());
        Ok(Event {
            tenant: record.tenant.map_or(TenantId::DEFAULT, TenantId),
            queue: QueueName::new(record.queue).map_err(name)?,
            partition: PartitionName::new(record.partition).map_err(name)?,
            transaction_id: TransactionId::new(record.transaction_id).map_err(name)?,
            message_id: record.message_id.map(MessageId),
            trace_id: record.trace_id,
            producer_sub: record.producer_sub.map(|sub| sub.into_owned().into()),
            encrypted: record.encrypted,
            accepted_at: record.accepted_at.map(Timestamp),
            payload: Bytes::copy_from_slice(record.payload.get().as_bytes()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn event(key: &str, payload: &str) -> Event {
        Event {
            tenant: TenantId::DEFAULT,
            queue: QueueName::new("q").unwrap(),
            partition: PartitionName::new("p").unwrap(),
            transaction_id: TransactionId::new(key).unwrap(),
            message_id: None,
            trace_id: None,
            producer_sub: None,
            encrypted: false,
            accepted_at: None,
            payload: Bytes::copy_from_slice(payload.as_bytes()),
        }
    }

    #[test]
    fn a_plain_event_of_the_default_tenant_is_the_public_record() {
        let text = String::from_utf8(event("t", r#"{"z" : 1.10}"#).encode().unwrap()).unwrap();
        assert_eq!(
            text,
            r#"{"queue":"q","partition":"p","transactionId":"t","encrypted":false,"payload":{"z" : 1.10}}"#
        );
    }

    #[test]
    fn every_field_survives() {
        let full = Event {
            tenant: TenantId(Uuid::from_u128(7)),
            message_id: Some(MessageId::mint()),
            trace_id: Some(Uuid::from_u128(9)),
            producer_sub: Some("é\"\\".into()),
            encrypted: true,
            accepted_at: Some(Timestamp(1_900_000_000_123_456)),
            ..event("k\u{2028}", "[1e400, \"\\u00e9\\/\"]")
        };
        assert_eq!(Event::decode(&full.encode().unwrap()).unwrap(), full);
    }

    #[test]
    fn records_of_the_public_broker_are_read() {
        let body = br#"{"queue":"q","partition":"p","transactionId":"t","payload":null,"later":1}"#;
        assert_eq!(Event::decode(body).unwrap(), event("t", "null"));
    }

    #[test]
    fn deep_payloads_need_no_stack() {
        let deep = format!("{}1{}", "[".repeat(200_000), "]".repeat(200_000));
        let event = event("t", &deep);
        assert_eq!(Event::decode(&event.encode().unwrap()).unwrap(), event);
    }

    #[test]
    fn what_is_no_event_is_named() {
        for body in [
            &b"{"[..],
            b"{}",
            b"\xff",
            br#"{"queue":"","partition":"p","transactionId":"t","payload":1}"#,
            br#"{"queue":"q","partition":"p","transactionId":"a\u0001","payload":1}"#,
        ] {
            assert!(Event::decode(body).is_err());
        }
        assert!(event("t", "{").encode().is_err());
    }
}
