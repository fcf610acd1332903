//! Which transaction ids are certainly *not* stored in a stretch of a partition's log, so that a push need not look
//! there.
//!
//! Pure: no socket, file, clock or database. Time comes in as [`Tick`]; hashes come in as 16-byte runs, as a segment
//! stores them.
//!
//! # What may be wrong, and what may not
//!
//! An entry of a partition knows every hash that is stored at the offsets of `(from, upto]`. [`DedupCache::ask`] answers
//! with that stretch, and with the part of it that may hold one of the hashes asked for. PostgreSQL then looks at what
//! lies above `upto`, at what lies at or below `from` and is still inside the deduplication window by its own clock, and
//! at that part. So three things are harmless: to know too little, to remember too long, and to say "maybe" of a hash
//! that is not stored. One is not: to claim a stretch and not to know all of it. Whatever is doubtful therefore ends in
//! an entry that is forgotten, and a hit here decides nothing.
//!
//! # Memory
//!
//! A hash is remembered by 26 of its bits in an open-addressing table of a **generation**, which stands for a run of
//! offsets. Its slot comes from other bits, and the 6 bits beside those kept say in which of 64 blocks of the run it
//! is, so that a repeat costs PostgreSQL a look at one block. Generations grow from 4 slots to 262,144; a full one is
//! never touched again until it is dropped as a whole, because its newest hash is older than the window or because the
//! budget is used up. That is 5 bytes a hash where there are many, and about 120 bytes a partition where there are few.
//!
//! ```
//! use queen_dedup::{Commit, Coverage, DedupCache, Tick};
//! use queen_types::{PartitionId, Uuid};
//!
//! let mut cache = DedupCache::new(1 << 20);
//! let partition = PartitionId(Uuid::from_u128(7));
//! assert_eq!(cache.ask(partition, &[1; 16], Tick(0)), Coverage::NONE);
//!
//! // The first segment of a log: nothing lies before it, so all is known.
//! let commit = Commit { base: 0, hashes: &[1; 16], before: None, window: 3600 };
//! cache.extend(partition, commit, Tick(0));
//! let known = Coverage { from: -1, upto: 0, maybe: None, shared: false };
//! assert_eq!(cache.ask(partition, &[2; 16], Tick(1)), known);
//! assert_eq!(cache.ask(partition, &[1; 16], Tick(1)), Coverage { maybe: Some((-1, 0)), ..known });
//! ```

mod cache;
mod entry;
mod generation;
mod slab;

pub use cache::{Before, Commit, Coverage, DedupCache, Page, Stats, Tick};

/// Bytes of a hash.
pub const HASH_LEN: usize = 16;
/// What an allocation costs beside its bytes, in the books of the cache.
const ALLOCATION: usize = 16;
