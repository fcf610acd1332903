//! The claim: one statement, one transaction, one round trip.

use queen_pg::{PgTimestamp, Row, Tid};
use queen_types::{Group, LeaseId, Offset, PartitionId, Timestamp, Uuid};

use super::candidates::WINDOW_BATCH;
use super::register::Seed;
use crate::{Storage, StorageError, sql};

/// Blob bytes after which a claim takes no further segment, at least one: what an answer of 8 MiB needs when nothing
/// compresses. The exact bound is kept when the segments are decoded.
const BLOB_BYTES_MAX: i64 = 8 * 1024 * 1024;

/// A partition that probably has work for the group.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    /// The partition.
    pub partition: PartitionId,
    /// Length of the lease, seconds.
    pub lease_seconds: i32,
    /// `delayedProcessing` of its queue, seconds.
    pub delayed: i32,
    /// `windowBuffer` of its queue, seconds.
    pub hold: i32,
    /// Where the group begins, should it have no cursor here.
    pub seed: Seed,
}

/// What ends the hold of a `windowBuffer` queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// The window since the first unserved message has passed, or [`WINDOW_BATCH`] messages are gathered: queue-level
    /// and discovery pops.
    Gathered,
    /// The partition was quiet for the window, or two windows have passed: pops of one partition.
    Quiet,
}

/// One claim.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// The group.
    pub group: &'a Group,
    /// The lease to take; `None` commits at once (auto-ack).
    pub lease: Option<&'a LeaseId>,
    /// Most messages.
    pub messages: i64,
    /// Most partitions; `None` = no cap.
    pub partitions: Option<i64>,
    /// How `windowBuffer` holds.
    pub hold: Hold,
    /// Where to look, in order of preference.
    pub candidates: &'a [Candidate],
}

/// A run of messages of one segment that a claim took.
#[derive(Debug, Clone)]
pub struct ClaimedSegment {
    /// Its partition.
    pub partition: PartitionId,
    /// Offset of the segment's first frame.
    pub base_offset: Offset,
    /// First frame taken.
    pub first_frame: usize,
    /// Frames taken.
    pub frames: usize,
    /// When the segment was appended.
    pub created_at: Timestamp,
    /// The segment.
    pub blob: Vec<u8>,
    /// How often the partition's present head has been delivered, from 1.
    pub attempt: u32,
    /// Where the partition's cursor lies since this claim wrote it.
    pub row: Tid,
}

impl ClaimedSegment {
    /// Offset of the first message taken.
    pub fn first_offset(&self) -> Offset {
        self.base_offset + self.first_frame as Offset
    }

    /// Offset of the last message taken.
    pub fn last_offset(&self) -> Offset {
        self.first_offset() + self.frames as Offset - 1
    }
}

impl Storage {
    /// Claims; what comes back is leased (or committed) by the time it is here, ordered by candidate, then offset.
    ///
    /// # Errors
    /// See [`StorageError`]. After a timeout the claim may have been committed: release by lease id.
    ///
    /// # Cancel safety
    /// A dropped call may leave a lease that nobody holds; release by lease id.
    pub async fn claim(&self, claim: &Claim<'_>) -> Result<Vec<ClaimedSegment>, StorageError> {
        if claim.candidates.is_empty() {
            return Ok(Vec::new());
        }
        let partitions: Vec<Uuid> = claim.candidates.iter().map(|c| c.partition.0).collect();
        let leases: Vec<i32> = claim.candidates.iter().map(|c| c.lease_seconds).collect();
        let delayed: Vec<i32> = claim.candidates.iter().map(|c| c.delayed).collect();
        let holds: Vec<i32> = claim.candidates.iter().map(|c| c.hold).collect();
        let from: Vec<PgTimestamp> = claim.candidates.iter().map(|c| c.seed.from()).collect();
        let birth: Vec<PgTimestamp> = claim.candidates.iter().map(|c| c.seed.birth()).collect();
        let mut conn = self.inner.pool.get().await?;
        let rows = conn
            .query(
                sql::POP_CLAIM,
                &[
                    &partitions,
                    &claim.group.as_str(),
                    &claim.lease.map(LeaseId::as_str),
                    &leases,
                    &claim.messages,
                    &claim.partitions,
                    &delayed,
                    &holds,
                    &(claim.hold == Hold::Quiet),
                    &WINDOW_BATCH,
                    &from,
                    &birth,
                    &BLOB_BYTES_MAX,
                ],
            )
            .await?;
        rows.iter().map(read).collect()
    }
}

fn read(row: &Row) -> Result<ClaimedSegment, StorageError> {
    let count = |column: usize| {
        usize::try_from(row.get::<_, i32>(column))
            .map_err(|_| StorageError::Misaligned("a negative frame number"))
    };
    Ok(ClaimedSegment {
        partition: PartitionId(row.get(1)),
        base_offset: row.get(2),
        first_frame: count(3)?,
        frames: count(4)?,
        created_at: row.get::<_, PgTimestamp>(5).0,
        blob: row.get(6),
        attempt: u32::try_from(row.get::<_, i32>(7)).unwrap_or(1),
        row: row.get(8),
    })
}
