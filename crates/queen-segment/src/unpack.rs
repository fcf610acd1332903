use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;
use zstd::bulk::Decompressor;

use crate::format::{Codec, Header, START_BYTES};
use crate::frame::{self, Frame};
use crate::{FrameRef, SegmentError};

thread_local! {
    /// One context per thread: making one costs more than decompressing a small segment.
    static UNPACKER: RefCell<Unpacker> = RefCell::new(Unpacker::new());
}

/// Opens segments with a zstd context that is used again.
#[derive(Default)]
pub struct Unpacker {
    decompressor: Option<Decompressor<'static>>,
}

impl Unpacker {
    /// An unpacker; its context is made by the first compressed segment.
    pub fn new() -> Unpacker {
        Unpacker::default()
    }

    /// Decodes and checks a blob: sizes, checksum, offset table and every frame.
    ///
    /// # Errors
    /// Whatever makes the blob unreadable, see [`SegmentError`]. Allocates at most the size of the blob or
    /// [`DECODED_BYTES_MAX`](crate::format::DECODED_BYTES_MAX), whichever is larger.
    pub fn open(&mut self, blob: &[u8]) -> Result<SegmentReader, SegmentError> {
        let (header, body) = Header::read(blob)?;
        let decoded = self.decode(&header, body)?;
        let computed = xxh3_64(&decoded);
        if computed != header.checksum {
            return Err(SegmentError::Checksum { stored: header.checksum, computed });
        }
        let reader = SegmentReader::over(decoded, header.count as usize);
        reader.check()?;
        Ok(reader)
    }

    fn decode(&mut self, header: &Header, body: &[u8]) -> Result<Bytes, SegmentError> {
        match header.codec {
            Codec::Plain => Ok(Bytes::copy_from_slice(body)),
            Codec::Zstd => self.decompress(header.decoded_len as usize, body),
        }
    }

    fn decompress(&mut self, needed: usize, body: &[u8]) -> Result<Bytes, SegmentError> {
        let codec = |error: std::io::Error| SegmentError::Codec(error.to_string());
        let mut decompressor = match self.decompressor.take() {
            Some(kept) => kept,
            None => Decompressor::new().map_err(codec)?,
        };
        let mut decoded = Vec::with_capacity(needed);
        let outcome = decompressor.decompress_to_buffer(body, &mut decoded);
        self.decompressor = Some(decompressor);
        let len = outcome.map_err(codec)?;
        if len != needed {
            return Err(SegmentError::Malformed("the body does not decompress to the declared size"));
        }
        Ok(Bytes::from(decoded))
    }
}

impl fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unpacker").finish_non_exhaustive()
    }
}

/// A decoded and checked segment. Cloning it, and the payloads of its frames, copies no bytes.
#[derive(Debug, Clone)]
pub struct SegmentReader {
    decoded: Bytes,
    count: usize,
    /// Where the offset table begins inside `decoded`.
    table: usize,
}

impl SegmentReader {
    /// Decodes and checks a blob with the context of this thread.
    ///
    /// # Errors
    /// As [`Unpacker::open`].
    pub fn open(blob: &[u8]) -> Result<SegmentReader, SegmentError> {
        UNPACKER.with_borrow_mut(|unpacker| unpacker.open(blob))
    }

    fn over(decoded: Bytes, count: usize) -> SegmentReader {
        // The header was checked: the table fits.
        let table = decoded.len().saturating_sub(count * START_BYTES);
        SegmentReader { decoded, count, table }
    }

    /// Number of frames, at least 1.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Never: a segment has at least one frame.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Decoded size in bytes; every payload that is kept alive keeps all of it.
    pub fn decoded_len(&self) -> usize {
        self.decoded.len()
    }

    /// The frame at `index`, 0-based; `None` past the end.
    pub fn frame(&self, index: usize) -> Option<Frame<'_>> {
        let frame = self.read(index)?.ok()?;
        Some(Frame {
            message_id: frame.message_id,
            transaction_id: frame.transaction_id,
            trace_id: frame.trace_id,
            producer_sub: frame.producer_sub,
            encrypted: frame.encrypted,
            payload: self.decoded.slice_ref(frame.payload),
        })
    }

    /// Up to `count` frames from index `from` on.
    pub fn frames(&self, from: usize, count: usize) -> Frames<'_> {
        let to = from.saturating_add(count).min(self.count);
        Frames { reader: self, next: from..to }
    }

    /// Every frame must be readable, so that [`frame`](Self::frame) answers each index below the count.
    fn check(&self) -> Result<(), SegmentError> {
        if self.start(0) != Some(0) {
            return Err(SegmentError::Malformed("the first frame does not begin at 0"));
        }
        for index in 0..self.count {
            self.read(index).ok_or(SegmentError::Malformed("the offset table does not ascend"))??;
        }
        Ok(())
    }

    /// `None` when the index, or what the offset table says about it, is out of range.
    fn read(&self, index: usize) -> Option<Result<FrameRef<'_>, SegmentError>> {
        if index >= self.count {
            return None;
        }
        let start = self.start(index)?;
        let end = if index + 1 == self.count { self.table } else { self.start(index + 1)? };
        if end > self.table {
            return None;
        }
        Some(frame::read(self.decoded.get(start..end)?))
    }

    fn start(&self, index: usize) -> Option<usize> {
        let entry = self.decoded.get(self.table + index * START_BYTES..)?.first_chunk::<START_BYTES>()?;
        Some(u32::from_le_bytes(*entry) as usize)
    }
}

/// Iterator of [`SegmentReader::frames`].
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    reader: &'a SegmentReader,
    next: Range<usize>,
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        self.reader.frame(self.next.next()?)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.next.size_hint()
    }
}

impl ExactSizeIterator for Frames<'_> {}
