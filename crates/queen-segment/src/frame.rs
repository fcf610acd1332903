use bytes::Bytes;
use queen_types::MessageId;
use uuid::Uuid;

use crate::SegmentError;
use crate::format::{
    FLAG_ENCRYPTED, FLAG_SUB, FLAG_TRACE, FLAGS_KNOWN, START_BYTES, put_sized, sized_len, take, take_sized,
};

/// One message on its way into a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameRef<'a> {
    /// Id minted by the broker.
    pub message_id: MessageId,
    /// Identity inside the partition; callers keep it within 65,535 bytes.
    pub transaction_id: &'a str,
    /// Trace id, given on the transaction route only.
    pub trace_id: Option<Uuid>,
    /// Subject of the validated token of the producer.
    pub producer_sub: Option<&'a str>,
    /// The payload is an encryption envelope.
    pub encrypted: bool,
    /// The payload, byte for byte; may be empty.
    pub payload: &'a [u8],
}

impl FrameRef<'_> {
    /// Bytes that this frame adds to a decoded segment, its entry in the offset table included.
    pub fn decoded_len(&self) -> usize {
        let trace = if self.trace_id.is_some() { 16 } else { 0 };
        let sub = self.producer_sub.map_or(0, |sub| sized_len(sub.len()));
        let texts = sized_len(self.transaction_id.len()) + sub + sized_len(self.payload.len());
        1 + 16 + trace + texts + START_BYTES
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.push(self.flags());
        out.extend_from_slice(self.message_id.0.as_bytes());
        if let Some(trace_id) = self.trace_id {
            out.extend_from_slice(trace_id.as_bytes());
        }
        put_sized(out, self.transaction_id.as_bytes());
        if let Some(sub) = self.producer_sub {
            put_sized(out, sub.as_bytes());
        }
        put_sized(out, self.payload);
    }

    fn flags(&self) -> u8 {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        flag(self.trace_id.is_some(), FLAG_TRACE)
            | flag(self.producer_sub.is_some(), FLAG_SUB)
            | flag(self.encrypted, FLAG_ENCRYPTED)
    }
}

/// One message of an opened segment. The texts borrow from the reader, the payload shares its buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Id minted by the broker.
    pub message_id: MessageId,
    /// Identity inside the partition.
    pub transaction_id: &'a str,
    /// Trace id, if the message has one.
    pub trace_id: Option<Uuid>,
    /// Subject of the token with which the message was pushed, if there was one.
    pub producer_sub: Option<&'a str>,
    /// The payload is an encryption envelope.
    pub encrypted: bool,
    /// The payload, byte for byte. An empty one is rendered as `null` by whoever writes JSON.
    pub payload: Bytes,
}

impl<'a> Frame<'a> {
    /// This frame as the input of a packer.
    pub fn as_ref(&self) -> FrameRef<'_> {
        FrameRef {
            message_id: self.message_id,
            transaction_id: self.transaction_id,
            trace_id: self.trace_id,
            producer_sub: self.producer_sub,
            encrypted: self.encrypted,
            payload: &self.payload,
        }
    }
}

/// Reads exactly one frame, extensions to the end of `input` included.
pub(crate) fn read(input: &[u8]) -> Result<FrameRef<'_>, SegmentError> {
    let mut rest = input;
    let [flags] = take(&mut rest)?;
    if flags & !FLAGS_KNOWN != 0 {
        return Err(SegmentError::Malformed("a frame has a flag beyond trace, sub and encrypted"));
    }
    let message_id = MessageId(Uuid::from_bytes(take(&mut rest)?));
    let trace_id = if flags & FLAG_TRACE != 0 { Some(Uuid::from_bytes(take(&mut rest)?)) } else { None };
    let transaction_id = take_text(&mut rest)?;
    let producer_sub = if flags & FLAG_SUB != 0 { Some(take_text(&mut rest)?) } else { None };
    let payload = take_sized(&mut rest)?;
    skip_extensions(rest)?;
    let encrypted = flags & FLAG_ENCRYPTED != 0;
    Ok(FrameRef { message_id, transaction_id, trace_id, producer_sub, encrypted, payload })
}

fn take_text<'a>(input: &mut &'a [u8]) -> Result<&'a str, SegmentError> {
    std::str::from_utf8(take_sized(input)?).map_err(|_| SegmentError::Malformed("a text is not UTF-8"))
}

fn skip_extensions(mut rest: &[u8]) -> Result<(), SegmentError> {
    while !rest.is_empty() {
        let [_tag] = take(&mut rest)?;
        take_sized(&mut rest)?;
    }
    Ok(())
}
