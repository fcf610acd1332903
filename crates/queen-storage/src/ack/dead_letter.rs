//! Dead letters: snapshots of messages, taken in the transaction that gives them up.

use queen_pg::{PgTimestamp, ToSql, Tx};
use queen_segment::SegmentReader;
use queen_types::{Group, Offset, PartitionId, Timestamp, Uuid};

use crate::pop::ClaimedSegment;
use crate::segment::Covering;
use crate::{StorageError, sql};

/// Largest payload that is copied as JSONB beside its bytes.
const JSON_COPY_BYTES_MAX: usize = 64 * 1024;

/// A record to be filed.
#[derive(Debug, Clone)]
pub(crate) struct DeadLetterRow {
    partition: PartitionId,
    group: String,
    offset: Offset,
    message_id: Option<Uuid>,
    transaction_id: String,
    payload: Option<Vec<u8>>,
    encrypted: bool,
    producer_sub: Option<String>,
    trace_id: Option<Uuid>,
    error: String,
    retries: i32,
    stored_at: Option<Timestamp>,
    /// The payload is still to be read from the segment.
    pending: bool,
}

impl DeadLetterRow {
    /// A record whose message [`snapshot`] reads from its segment.
    pub(crate) fn of_offset(
        partition: PartitionId,
        group: &Group,
        offset: Offset,
        transaction_id: &str,
        error: &str,
        retries: i32,
    ) -> Self {
        DeadLetterRow {
            partition,
            group: group.as_str().to_owned(),
            offset,
            message_id: None,
            transaction_id: storable(transaction_id),
            payload: None,
            encrypted: false,
            producer_sub: None,
            trace_id: None,
            error: storable(error),
            retries,
            stored_at: None,
            pending: true,
        }
    }

    /// A message whose segment cannot be decoded: its raw bytes stand in for the payload, on the segment's first record.
    pub(crate) fn undecodable(segment: &ClaimedSegment, group: &Group, offset: Offset) -> Self {
        DeadLetterRow {
            payload: (offset == segment.first_offset()).then(|| segment.blob.clone()),
            stored_at: Some(segment.created_at),
            pending: false,
            ..Self::of_offset(segment.partition, group, offset, "", "segment undecodable", 0)
        }
    }
}

/// Text as PostgreSQL can hold it.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Reads the messages of the records that need theirs.
pub(crate) async fn snapshot(tx: &mut Tx<'_>, rows: &mut [DeadLetterRow]) -> Result<(), StorageError> {
    let wanted: Vec<usize> = (0..rows.len()).filter(|i| rows[*i].pending).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let partitions: Vec<Uuid> = wanted.iter().map(|i| rows[*i].partition.0).collect();
    let offsets: Vec<Offset> = wanted.iter().map(|i| rows[*i].offset).collect();
    for covering in tx.query(sql::SEGMENT_COVER, &[&partitions, &offsets]).await?.iter().map(Covering::read) {
        let Some(i) = wanted.get(covering.request) else { continue };
        fill(&mut rows[*i], &covering);
    }
    for row in rows.iter_mut().filter(|row| row.pending) {
        row.error = format!("{} (payload deleted by retention)", row.error);
        row.pending = false;
    }
    Ok(())
}

fn fill(row: &mut DeadLetterRow, covering: &Covering) {
    row.stored_at = Some(covering.created_at);
    row.pending = false;
    let Ok(reader) = SegmentReader::open(&covering.blob) else {
        row.error = format!("{} (segment undecodable)", row.error);
        row.payload = Some(covering.blob.clone());
        return;
    };
    let frame = usize::try_from(row.offset - covering.base_offset).ok().and_then(|i| reader.frame(i));
    if let Some(frame) = frame {
        row.message_id = Some(frame.message_id.0);
        row.transaction_id = storable(frame.transaction_id);
        row.payload = Some(frame.payload.to_vec());
        row.encrypted = frame.encrypted;
        row.producer_sub = frame.producer_sub.map(storable);
        row.trace_id = frame.trace_id;
    }
}

/// Files records inside a transaction.
pub(crate) async fn file(tx: &mut Tx<'_>, rows: &[DeadLetterRow]) -> Result<(), StorageError> {
    if !rows.is_empty() {
        tx.query(sql::ACK_DEAD_LETTER, &Columns::of(rows).params()).await?;
    }
    Ok(())
}

/// The parameters of `ack/dead_letter.sql`.
pub(crate) struct Columns<'a> {
    partitions: Vec<Uuid>,
    groups: Vec<&'a str>,
    offsets: Vec<Offset>,
    message_ids: Vec<Option<Uuid>>,
    transaction_ids: Vec<&'a str>,
    payloads: Vec<Option<&'a [u8]>>,
    json: Vec<Option<&'a str>>,
    encrypted: Vec<bool>,
    producers: Vec<Option<&'a str>>,
    traces: Vec<Option<Uuid>>,
    errors: Vec<&'a str>,
    retries: Vec<i32>,
    stored_at: Vec<Option<PgTimestamp>>,
}

impl<'a> Columns<'a> {
    pub(crate) fn of(rows: &'a [DeadLetterRow]) -> Self {
        Columns {
            partitions: rows.iter().map(|r| r.partition.0).collect(),
            groups: rows.iter().map(|r| r.group.as_str()).collect(),
            offsets: rows.iter().map(|r| r.offset).collect(),
            message_ids: rows.iter().map(|r| r.message_id).collect(),
            transaction_ids: rows.iter().map(|r| r.transaction_id.as_str()).collect(),
            payloads: rows.iter().map(|r| r.payload.as_deref()).collect(),
            // Without a message id these are the bytes of a damaged segment, and no JSON.
            json: rows.iter().map(|r| r.message_id.and(r.payload.as_deref()).and_then(json_copy)).collect(),
            encrypted: rows.iter().map(|r| r.encrypted).collect(),
            producers: rows.iter().map(|r| r.producer_sub.as_deref()).collect(),
            traces: rows.iter().map(|r| r.trace_id).collect(),
            errors: rows.iter().map(|r| r.error.as_str()).collect(),
            retries: rows.iter().map(|r| r.retries).collect(),
            stored_at: rows.iter().map(|r| r.stored_at.map(PgTimestamp)).collect(),
        }
    }

    pub(crate) fn params(&self) -> [&(dyn ToSql + Sync); 13] {
        [
            &self.partitions,
            &self.groups,
            &self.offsets,
            &self.message_ids,
            &self.transaction_ids,
            &self.payloads,
            &self.json,
            &self.encrypted,
            &self.producers,
            &self.traces,
            &self.errors,
            &self.retries,
            &self.stored_at,
        ]
    }
}

/// The payload as JSON text where JSONB surely holds it. One that it refuses would fail the whole ack, so anything
/// doubtful is left out: escapes of the `\u` kind (U+0000, lone surrogates), exponents and long numbers, deep nesting.
pub(crate) fn json_copy(payload: &[u8]) -> Option<&str> {
    const DEPTH_MAX: usize = 256;
    const DIGITS_MAX: usize = 64;
    if payload.is_empty() || payload.len() > JSON_COPY_BYTES_MAX {
        return None;
    }
    let (mut depth, mut digits, mut in_text, mut escaped) = (0usize, 0usize, false, false);
    for byte in payload {
        if in_text {
            match byte {
                b'u' if escaped => return None,
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_text = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_text = true,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'0'..=b'9' => digits += 1,
            b'e' | b'E' if digits > 0 => return None,
            _ => {}
        }
        if !byte.is_ascii_digit() {
            digits = 0;
        }
        if depth > DEPTH_MAX || digits > DIGITS_MAX {
            return None;
        }
    }
    // A library caller may have pushed what is no JSON at all.
    serde_json::from_slice::<serde::de::IgnoredAny>(payload).ok()?;
    std::str::from_utf8(payload).ok()
}

#[cfg(test)]
mod tests {
    use super::json_copy;

    #[test]
    fn what_jsonb_may_refuse_is_not_copied() {
        for plain in [r#"{"a":[1,2.5,true,null,"x\n\"y"]}"#, "0", "-1.25", r#""é""#, r#"{"true":1}"#] {
            assert_eq!(json_copy(plain.as_bytes()), Some(plain));
        }
        let deep = "[".repeat(300) + &"]".repeat(300);
        let long = "1".repeat(100);
        for odd in ["no json", "{", r#""a\u0000b""#, r#""\ud800""#, "1e999999", "2E+5", &deep, &long, ""] {
            assert_eq!(json_copy(odd.as_bytes()), None, "{odd}");
        }
        assert_eq!(json_copy(b"\"\xff\""), None);
    }
}
