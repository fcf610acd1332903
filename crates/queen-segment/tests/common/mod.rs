//! Frames for tests, and a hand-written encoder that does not use the crate's.
#![allow(dead_code, reason = "each test file uses a part")]

use proptest::prelude::*;
use queen_segment::{Frame, FrameRef};
use queen_types::{MessageId, Uuid};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) message_id: MessageId,
    pub(crate) transaction_id: String,
    pub(crate) trace_id: Option<Uuid>,
    pub(crate) producer_sub: Option<String>,
    pub(crate) encrypted: bool,
    pub(crate) payload: Vec<u8>,
}

impl Owned {
    pub(crate) fn new(id: u128, transaction_id: &str, payload: &[u8]) -> Owned {
        Owned {
            message_id: MessageId(Uuid::from_u128(id)),
            transaction_id: transaction_id.into(),
            trace_id: None,
            producer_sub: None,
            encrypted: false,
            payload: payload.into(),
        }
    }

    pub(crate) fn as_ref(&self) -> FrameRef<'_> {
        FrameRef {
            message_id: self.message_id,
            transaction_id: &self.transaction_id,
            trace_id: self.trace_id,
            producer_sub: self.producer_sub.as_deref(),
            encrypted: self.encrypted,
            payload: &self.payload,
        }
    }

    pub(crate) fn of(frame: Frame<'_>) -> Owned {
        Owned {
            message_id: frame.message_id,
            transaction_id: frame.transaction_id.into(),
            trace_id: frame.trace_id,
            producer_sub: frame.producer_sub.map(Into::into),
            encrypted: frame.encrypted,
            payload: frame.payload.to_vec(),
        }
    }
}

pub(crate) fn refs(frames: &[Owned]) -> impl Iterator<Item = FrameRef<'_>> {
    frames.iter().map(Owned::as_ref)
}

pub(crate) fn arbitrary_frame() -> impl Strategy<Value = Owned> {
    let text = prop_oneof![Just(String::new()), ".{0,40}", "[a-z0-9-]{200,300}"];
    let payload = prop_oneof![
        Just(Vec::new()),
        prop::collection::vec(any::<u8>(), 0..300),
        // Repetitive, so that segments of both codecs come up.
        (any::<u8>(), 0usize..5_000).prop_map(|(byte, len)| vec![byte; len]),
    ];
    let ids = (any::<u128>(), prop::option::of(any::<u128>()));
    (ids, text.clone(), prop::option::of(text), any::<bool>(), payload).prop_map(
        |((id, trace), transaction_id, producer_sub, encrypted, payload)| Owned {
            message_id: MessageId(Uuid::from_u128(id)),
            transaction_id,
            trace_id: trace.map(Uuid::from_u128),
            producer_sub,
            encrypted,
            payload,
        },
    )
}

/// A blob of version 1 around decoded bytes, codec none; the count and everything else is the caller's business.
pub(crate) fn seal(count: u32, decoded: &[u8]) -> Vec<u8> {
    let mut blob = vec![1, 0];
    blob.extend_from_slice(&count.to_le_bytes());
    blob.extend_from_slice(&(decoded.len() as u32).to_le_bytes());
    blob.extend_from_slice(&xxhash_rust::xxh3::xxh3_64(decoded).to_le_bytes());
    blob.extend_from_slice(decoded);
    blob
}

/// Frames given as raw bytes, followed by their offset table.
pub(crate) fn decoded(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = frames.concat();
    let mut start = 0u32;
    for frame in frames {
        bytes.extend_from_slice(&start.to_le_bytes());
        start += frame.len() as u32;
    }
    bytes
}

/// A raw frame with short fields: no trace, no sub.
pub(crate) fn raw_frame(flags: u8, id: u128, transaction_id: &str, payload: &[u8], tail: &[u8]) -> Vec<u8> {
    let mut frame = vec![flags];
    frame.extend_from_slice(&id.to_be_bytes());
    frame.push(transaction_id.len() as u8);
    frame.extend_from_slice(transaction_id.as_bytes());
    frame.push(payload.len() as u8);
    frame.extend_from_slice(payload);
    frame.extend_from_slice(tail);
    frame
}
