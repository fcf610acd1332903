use crate::format::{DECODED_BYTES_MAX, VERSION};

/// Why a blob cannot be read. None of these is ever "no frames".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// The first byte names a layout that this release does not know.
    #[error("segment has format version {version}, this release reads version {VERSION}")]
    UnknownVersion {
        /// The first byte of the blob.
        version: u8,
    },
    /// The codec byte is not known.
    #[error("segment has codec {codec}, known are 0 (none) and 1 (zstd)")]
    UnknownCodec {
        /// The second byte of the blob.
        codec: u8,
    },
    /// The blob was compressed with a trained dictionary, which this release does not have.
    #[error("segment needs zstd dictionary {id}, this release reads segments without dictionaries")]
    UnknownDictionary {
        /// Id of the dictionary as the blob names it.
        id: u32,
    },
    /// Something ends before it should.
    #[error("segment is truncated: {needed} bytes needed, {len} left")]
    Truncated {
        /// Bytes that the next item takes.
        needed: usize,
        /// Bytes that are there.
        len: usize,
    },
    /// The declared size is beyond what may be allocated for a compressed segment.
    #[error("compressed segment declares {declared} decoded bytes, at most {DECODED_BYTES_MAX} are allowed")]
    TooLarge {
        /// Decoded size that the blob declares, in bytes.
        declared: usize,
    },
    /// The decoded bytes are not those that were packed.
    #[error("segment checksum is {computed:016x}, it was packed with {stored:016x}")]
    Checksum {
        /// Checksum in the blob.
        stored: u64,
        /// Checksum of the bytes that were decoded.
        computed: u64,
    },
    /// The parts contradict each other.
    #[error("segment is malformed: {0}")]
    Malformed(&'static str),
    /// The compressed body cannot be decompressed.
    #[error("segment cannot be decompressed: {0}")]
    Codec(String),
}
