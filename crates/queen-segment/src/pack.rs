use std::fmt;

use xxhash_rust::xxh3::xxh3_64;
use zstd::bulk::Compressor;

use crate::format::{Codec, DECODED_BYTES_MAX, HEADER_BYTES, Header};
use crate::{FrameRef, TxnHash};

/// zstd level used unless another is configured.
pub const DEFAULT_LEVEL: i32 = 3;

/// Below this many decoded bytes the time for compression buys next to nothing.
const COMPRESS_BYTES_MIN: usize = 1024;

/// A compressed body must save at least one part in this many, or the plain one is kept: it needs no decompression.
const SAVING_PART: usize = 16;

/// Buffers beyond this size, left by a rare huge segment, are given back.
const KEPT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A run of frames, ready to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedSegment {
    /// Number of frames.
    pub count: u32,
    /// [`TxnHash`] of each frame's transaction id, 16 bytes each, in frame order.
    pub hashes: Vec<u8>,
    /// The blob, see [`format`](mod@crate::format). Empty when there were no frames.
    pub blob: Vec<u8>,
}

/// Packs frames into segments. It owns a zstd context and buffers that are used again, so keep one per worker.
pub struct Packer {
    level: i32,
    /// Made at the first segment that wants compression. None also when zstd cannot have its memory; then segments
    /// stay plain.
    compressor: Option<Compressor<'static>>,
    decoded: Vec<u8>,
    starts: Vec<u32>,
    compressed: Vec<u8>,
}

impl Packer {
    /// A packer with a zstd level (1 fastest to 22 smallest, negative ones faster still, 0 means
    /// [`DEFAULT_LEVEL`]); a level outside of zstd's range is moved to its nearest end.
    pub fn new(level: i32) -> Packer {
        let range = zstd::compression_level_range();
        Packer {
            level: level.clamp(*range.start(), *range.end()),
            compressor: None,
            decoded: Vec::new(),
            starts: Vec::new(),
            compressed: Vec::new(),
        }
    }

    /// Packs one segment. Without frames there is nothing to store: count 0 and an empty blob.
    ///
    /// # Panics
    /// When the frames take more than 4 GiB together, four times what PostgreSQL could store. Cut runs with
    /// [`split`](crate::split).
    pub fn pack<'a>(&mut self, frames: impl IntoIterator<Item = FrameRef<'a>>) -> PackedSegment {
        let hashes = self.encode(frames);
        let count = (hashes.len() / 16) as u32;
        let blob = if count == 0 { Vec::new() } else { self.seal(count) };
        self.give_back();
        PackedSegment { count, hashes, blob }
    }

    /// Writes frames and offset table into `decoded`.
    fn encode<'a>(&mut self, frames: impl IntoIterator<Item = FrameRef<'a>>) -> Vec<u8> {
        let frames = frames.into_iter();
        let mut hashes = Vec::with_capacity(16 * frames.size_hint().0.min(10_000));
        self.decoded.clear();
        self.starts.clear();
        for frame in frames {
            self.starts.push(offset(self.decoded.len()));
            frame.write(&mut self.decoded);
            hashes.extend_from_slice(&TxnHash::of(frame.transaction_id.as_bytes()).0);
        }
        for start in &self.starts {
            self.decoded.extend_from_slice(&start.to_le_bytes());
        }
        hashes
    }

    fn seal(&mut self, count: u32) -> Vec<u8> {
        let decoded_len = offset(self.decoded.len());
        let checksum = xxh3_64(&self.decoded);
        let codec = if self.compress() { Codec::Zstd } else { Codec::Plain };
        let body = match codec {
            Codec::Zstd => &self.compressed,
            Codec::Plain => &self.decoded,
        };
        let mut blob = Vec::with_capacity(HEADER_BYTES + body.len());
        Header { codec, count, decoded_len, checksum }.write(&mut blob);
        blob.extend_from_slice(body);
        blob
    }

    /// Compresses `decoded` into `compressed`; whether that pays.
    fn compress(&mut self) -> bool {
        if !(COMPRESS_BYTES_MIN..=DECODED_BYTES_MAX).contains(&self.decoded.len()) {
            return false;
        }
        if self.compressor.is_none() {
            self.compressor = Compressor::new(self.level).ok();
        }
        let Some(compressor) = &mut self.compressor else { return false };
        self.compressed.clear();
        self.compressed.reserve(zstd::zstd_safe::compress_bound(self.decoded.len()));
        match compressor.compress_to_buffer(&self.decoded, &mut self.compressed) {
            Ok(len) => len <= self.decoded.len() - self.decoded.len() / SAVING_PART,
            Err(_) => {
                self.compressor = None;
                false
            }
        }
    }

    fn give_back(&mut self) {
        for buffer in [&mut self.decoded, &mut self.compressed] {
            if buffer.capacity() > KEPT_BYTES_MAX {
                *buffer = Vec::new();
            }
        }
    }
}

fn offset(bytes: usize) -> u32 {
    assert!(bytes <= u32::MAX as usize, "{bytes} bytes in one segment, at most 4 GiB fit");
    bytes as u32
}

impl Default for Packer {
    fn default() -> Self {
        Packer::new(DEFAULT_LEVEL)
    }
}

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packer").field("level", &self.level).finish_non_exhaustive()
    }
}
