//! Segments: a run of messages as one checked, compressed blob, and back.
//!
//! Pure: no socket, file, clock or database. Bytes in, bytes out. Decoding never panics and never answers frames
//! that differ from those packed: a blob is either whole, or an error that says what is wrong with it.
//!
//! The layout of a blob is described in [`format`](mod@format).

pub mod format;

mod error;
mod frame;
mod hash;
mod pack;
mod split;
mod unpack;

pub use error::SegmentError;
pub use frame::{Frame, FrameRef};
pub use hash::TxnHash;
pub use pack::{DEFAULT_LEVEL, PackedSegment, Packer};
pub use split::{Limits, split};
pub use unpack::{Frames, SegmentReader, Unpacker};
