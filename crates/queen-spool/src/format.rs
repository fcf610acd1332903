//! The bytes of a file.
//!
//! Format 2: [`MAGIC`], a header record, then one record an event. A record is the length of its body (u32, little
//! endian), a CRC-32C over length and body (u32, little endian), and the body. Format 1, of the public broker: records of
//! length and body, nothing else; it is read, not written.

use queen_types::{Timestamp, Uuid};
use serde::{Deserialize, Serialize};

use crate::crc::crc;

/// First bytes of a file of format 2. As the length of a record of format 1 it would be more than a gigabyte.
pub(crate) const MAGIC: [u8; 8] = *b"QUEENSP2";
/// Length and checksum.
pub(crate) const FRAME: usize = 8;
/// Length alone.
pub(crate) const FRAME_V1: usize = 4;

/// The first record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Header {
    pub(crate) format: u32,
    pub(crate) server_id: String,
    pub(crate) instance_id: Uuid,
    /// Microseconds since 1970.
    pub(crate) created: i64,
}

impl Header {
    pub(crate) fn new(server_id: &str, instance_id: Uuid, created: Timestamp) -> Header {
        Header { format: 2, server_id: server_id.to_owned(), instance_id, created: created.0 }
    }

    /// Magic and header record.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        // Numbers and plain text always serialize.
        let body = serde_json::to_vec(self).unwrap_or_default();
        frame(&mut out, &body);
        out
    }
}

/// Appends a record of format 2.
pub(crate) fn frame(out: &mut Vec<u8>, body: &[u8]) {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes();
    out.extend_from_slice(&length);
    out.extend_from_slice(&crc(&[&length, body]).to_le_bytes());
    out.extend_from_slice(body);
}

/// What stands at the beginning of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame<'b> {
    /// A whole record: its body and the bytes that it takes.
    Whole(&'b [u8], usize),
    /// More bytes are needed than there are.
    Short,
    /// A whole record of the wrong sum.
    Wrong,
}

/// Reads a record of format 2.
pub(crate) fn unframe(bytes: &[u8]) -> Frame<'_> {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Frame::Short };
    let Some((sum, rest)) = rest.split_first_chunk::<4>() else { return Frame::Short };
    let size = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let Some(body) = rest.get(..size) else { return Frame::Short };
    if crc(&[length, body]) == u32::from_le_bytes(*sum) && size > 0 {
        Frame::Whole(body, FRAME + size)
    } else {
        Frame::Wrong
    }
}

/// Bodies of the whole records that can be found in damaged bytes, wherever they begin.
pub(crate) fn salvage(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at + FRAME < bytes.len() {
        match unframe(&bytes[at..]) {
            // Only text begins like that; a sum that fits by chance is one in four thousand millions.
            Frame::Whole(body, size) if body.first() == Some(&b'{') => {
                found.push(body.to_vec());
                at += size;
            }
            _ => at += 1,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_their_damage() {
        let mut bytes = Vec::new();
        frame(&mut bytes, b"{\"a\":1}");
        assert_eq!(unframe(&bytes), Frame::Whole(b"{\"a\":1}", bytes.len()));
        for cut in 0..bytes.len() {
            assert_eq!(unframe(&bytes[..cut]), Frame::Short, "{cut}");
        }
        for at in 4..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(unframe(&damaged), Frame::Wrong, "{at}");
        }
        assert_eq!(unframe(&[0; 64]), Frame::Wrong);
    }

    #[test]
    fn records_behind_damage_are_found() {
        let mut bytes = b"garbage\0\0\0".to_vec();
        frame(&mut bytes, b"{\"a\":1}");
        bytes.extend_from_slice(b"more");
        frame(&mut bytes, b"{\"b\":2}");
        assert_eq!(salvage(&bytes), [b"{\"a\":1}".to_vec(), b"{\"b\":2}".to_vec()]);
        assert!(salvage(&[0; 100]).is_empty());
    }
}
