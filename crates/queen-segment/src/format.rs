//! Layout of a blob, format version 1. All integers are little-endian; `varint` is unsigned LEB128 of a u32.
//!
//! ```text
//! blob    = version u8 | codec u8 | count u32 | decoded_len u32 | checksum u64 | body
//! body    = decoded                     codec 0
//!         | zstd frame of decoded       codec 1
//!         | dictionary id u32 | zstd frame of decoded        codec 2, reserved
//! decoded = frame * count | start u32 * count
//! frame   = flags u8 | message id 16 | [trace id 16] | varint, transaction id | [varint, producer sub]
//!         | varint, payload | extension*
//! extension = tag u8 | varint, bytes
//! ```
//!
//! `checksum` is xxh3_64 (seed 0) of `decoded`. `start` is where a frame begins inside `decoded`: the first is 0
//! and they ascend strictly, which pins `count`; a frame ends where the next begins, the last where the table
//! begins. Whatever follows the payload inside a frame is a list of extensions; a reader skips tags that it does
//! not know. Unknown versions, codecs and flags are errors: data that needs them cannot be read without them.

use crate::SegmentError;

/// Format version that this release writes, the first byte of a blob.
pub const VERSION: u8 = 1;

/// Largest size that a compressed body may decompress to, in bytes; a larger segment stays plain. A frame alone in
/// its segment may hold a whole request body (64 MiB at most), grown by a third when it is encrypted.
pub const DECODED_BYTES_MAX: usize = 256 * 1024 * 1024;

pub(crate) const HEADER_BYTES: usize = 18;
pub(crate) const START_BYTES: usize = 4;

/// Shortest frame: flags, message id, and two zero lengths.
pub(crate) const FRAME_BYTES_MIN: usize = 1 + 16 + 1 + 1;

pub(crate) const CODEC_NONE: u8 = 0;
pub(crate) const CODEC_ZSTD: u8 = 1;
pub(crate) const CODEC_ZSTD_DICTIONARY: u8 = 2;

pub(crate) const FLAG_TRACE: u8 = 1;
pub(crate) const FLAG_SUB: u8 = 2;
pub(crate) const FLAG_ENCRYPTED: u8 = 4;
pub(crate) const FLAGS_KNOWN: u8 = FLAG_TRACE | FLAG_SUB | FLAG_ENCRYPTED;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    Plain,
    Zstd,
}

/// The fixed head of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) codec: Codec,
    pub(crate) count: u32,
    pub(crate) decoded_len: u32,
    pub(crate) checksum: u64,
}

impl Header {
    pub(crate) fn write(self, blob: &mut Vec<u8>) {
        blob.push(VERSION);
        blob.push(match self.codec {
            Codec::Plain => CODEC_NONE,
            Codec::Zstd => CODEC_ZSTD,
        });
        blob.extend_from_slice(&self.count.to_le_bytes());
        blob.extend_from_slice(&self.decoded_len.to_le_bytes());
        blob.extend_from_slice(&self.checksum.to_le_bytes());
    }

    /// The head of `blob` and the body after it. Sizes are checked here, before anything is allocated.
    pub(crate) fn read(blob: &[u8]) -> Result<(Header, &[u8]), SegmentError> {
        let version = *blob.first().ok_or(SegmentError::Truncated { needed: HEADER_BYTES, len: 0 })?;
        if version != VERSION {
            return Err(SegmentError::UnknownVersion { version });
        }
        let (head, body) = blob
            .split_at_checked(HEADER_BYTES)
            .ok_or(SegmentError::Truncated { needed: HEADER_BYTES, len: blob.len() })?;
        let (_, mut fields) = head.split_at(2);
        let header = Header {
            codec: read_codec(head[1], body)?,
            count: u32::from_le_bytes(take(&mut fields)?),
            decoded_len: u32::from_le_bytes(take(&mut fields)?),
            checksum: u64::from_le_bytes(take(&mut fields)?),
        };
        header.check_sizes(body.len())?;
        Ok((header, body))
    }

    fn check_sizes(&self, len: usize) -> Result<(), SegmentError> {
        let decoded_len = self.decoded_len as usize;
        match self.codec {
            Codec::Plain if len < decoded_len => {
                return Err(SegmentError::Truncated { needed: decoded_len, len });
            }
            Codec::Plain if len > decoded_len => {
                return Err(SegmentError::Malformed("bytes follow the declared end of the body"));
            }
            Codec::Zstd if decoded_len > DECODED_BYTES_MAX => {
                return Err(SegmentError::TooLarge { declared: decoded_len });
            }
            Codec::Plain | Codec::Zstd => {}
        }
        if self.count == 0 {
            return Err(SegmentError::Malformed("it declares no frames, at least 1 is needed"));
        }
        let least = self.count as u64 * (FRAME_BYTES_MIN + START_BYTES) as u64;
        if least > decoded_len as u64 {
            return Err(SegmentError::Malformed("it declares more frames than its decoded bytes can hold"));
        }
        Ok(())
    }
}

fn read_codec(byte: u8, body: &[u8]) -> Result<Codec, SegmentError> {
    match byte {
        CODEC_NONE => Ok(Codec::Plain),
        CODEC_ZSTD => Ok(Codec::Zstd),
        CODEC_ZSTD_DICTIONARY => {
            let mut body = body;
            Err(SegmentError::UnknownDictionary { id: u32::from_le_bytes(take(&mut body)?) })
        }
        codec => Err(SegmentError::UnknownCodec { codec }),
    }
}

/// Cuts `N` bytes off the front.
pub(crate) fn take<const N: usize>(input: &mut &[u8]) -> Result<[u8; N], SegmentError> {
    let (head, rest) =
        input.split_first_chunk::<N>().ok_or(SegmentError::Truncated { needed: N, len: input.len() })?;
    *input = rest;
    Ok(*head)
}

/// Cuts a varint length and that many bytes off the front.
pub(crate) fn take_sized<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], SegmentError> {
    let len = take_varint(input)? as usize;
    let (head, rest) =
        input.split_at_checked(len).ok_or(SegmentError::Truncated { needed: len, len: input.len() })?;
    *input = rest;
    Ok(head)
}

fn take_varint(input: &mut &[u8]) -> Result<u32, SegmentError> {
    let mut value = 0u64;
    for shift in [0, 7, 14, 21, 28] {
        let [byte] = take(input)?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return u32::try_from(value).map_err(|_| SegmentError::Malformed("a length exceeds 32 bits"));
        }
    }
    Err(SegmentError::Malformed("a length takes more than 5 bytes"))
}

pub(crate) fn put_sized(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut rest = bytes.len();
    while rest >= 0x80 {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
    out.extend_from_slice(bytes);
}

/// Bytes that [`put_sized`] writes for `len` bytes.
pub(crate) fn sized_len(len: usize) -> usize {
    let bits = (usize::BITS - len.leading_zeros()).max(1) as usize;
    bits.div_ceil(7) + len
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_body_may_be_as_large_as_it_is_and_a_compressed_one_is_bounded() {
        let decoded_len = DECODED_BYTES_MAX as u32 + 1;
        let plain = Header { codec: Codec::Plain, count: 1, decoded_len, checksum: 0 };
        assert_eq!(plain.check_sizes(decoded_len as usize), Ok(()));
        let zstd = Header { codec: Codec::Zstd, ..plain };
        assert_eq!(zstd.check_sizes(100), Err(SegmentError::TooLarge { declared: decoded_len as usize }));
    }

    #[test]
    fn lengths_take_what_they_are_said_to_take() {
        for len in [0, 1, 127, 128, 16_383, 16_384, 65_535, 1 << 21] {
            let mut out = Vec::new();
            put_sized(&mut out, &vec![7; len]);
            assert_eq!(out.len(), sized_len(len));
            let mut rest = &out[..];
            assert_eq!((take_sized(&mut rest).map(<[u8]>::len), rest.len()), (Ok(len), 0));
        }
    }
}
