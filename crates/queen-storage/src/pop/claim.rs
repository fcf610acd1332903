//! The claim: one statement, one transaction, one round trip, for any number of pops.

use std::sync::Arc;
use std::time::Duration;

use queen_pg::{PgTimestamp, Row, Tid};
use queen_types::{Group, LeaseId, Offset, PartitionId, Timestamp, Uuid};

use super::candidates::WINDOW_BATCH;
use super::hint::CursorHint;
use super::register::Seed;
use super::short::Short;
use crate::{Storage, StorageError, sql};

/// Blob bytes after which a claim takes no further segment, at least one: what an answer of 8 MiB needs when nothing
/// compresses. The exact bound is kept when the segments are decoded.
pub(super) const BLOB_BYTES_MAX: i64 = 8 * 1024 * 1024;

/// A partition that probably has work for the group.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    /// The partition.
    pub partition: PartitionId,
    /// Where the group's cursor was last seen.
    pub cursor: CursorHint,
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

/// One claim. No two claims of one call name the same partition for the same group.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The group.
    pub group: Group,
    /// The lease to take; `None` commits at once (auto-ack).
    pub lease: Option<LeaseId>,
    /// Most messages.
    pub messages: i64,
    /// How `windowBuffer` holds.
    pub hold: Hold,
    /// Where to look, in order of preference; all of them may be claimed.
    pub candidates: Vec<Candidate>,
}

/// What a claim brought.
#[derive(Debug, Clone, Default)]
pub struct Claimed {
    /// What was taken, ordered by candidate, then offset.
    pub segments: Vec<ClaimedSegment>,
    /// One per candidate, in order.
    pub outcomes: Vec<Outcome>,
}

/// What a claim found at one candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Messages were taken, and so many lie behind them, visible or not.
    Taken {
        /// Where the cursor lies now.
        row: Tid,
        /// Messages behind the batch.
        left: u64,
    },
    /// Nothing is pending.
    Nothing,
    /// Nothing is pending, and the cursor seems to lie beyond the log.
    Beyond,
    /// Not claimable for so long: a lease, a retry delay, or (zero) somebody else at this very moment.
    Busy(Duration),
    /// Something is pending, and none of it is visible for so long.
    Hidden(Duration),
    /// The budget was spent before its turn came; so many messages are pending.
    Spent(u64),
    /// Not leased, for whatever reason: its cursor may lie elsewhere than was thought.
    Open,
}

/// A run of messages of one segment that a claim took.
#[derive(Debug, Clone)]
pub struct ClaimedSegment {
    /// Its partition.
    pub partition: PartitionId,
    /// Where the cursor lies now.
    pub row: Tid,
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

/// The parameters of `pop/claim.sql`, one element per candidate.
#[derive(Default)]
struct Columns<'a> {
    pop: Vec<i32>,
    partition: Vec<Uuid>,
    row: Vec<Option<Tid>>,
    group: Vec<&'a str>,
    worker: Vec<Option<&'a str>>,
    lease_seconds: Vec<i32>,
    delayed: Vec<i32>,
    hold: Vec<i32>,
    quiet: Vec<bool>,
    from: Vec<PgTimestamp>,
    birth: Vec<PgTimestamp>,
    messages: Vec<i64>,
}

impl<'a> Columns<'a> {
    fn of(claims: &[&'a Claim]) -> Self {
        let mut columns = Columns::default();
        for (pop, claim) in claims.iter().enumerate() {
            for candidate in &claim.candidates {
                columns.pop.push(i32::try_from(pop).unwrap_or(i32::MAX));
                columns.partition.push(candidate.partition.0);
                columns.row.push(candidate.cursor.row());
                columns.group.push(claim.group.as_str());
                columns.worker.push(claim.lease.as_ref().map(LeaseId::as_str));
                columns.lease_seconds.push(candidate.lease_seconds);
                columns.delayed.push(candidate.delayed);
                columns.hold.push(candidate.hold);
                columns.quiet.push(claim.hold == Hold::Quiet);
                columns.from.push(candidate.seed.from());
                columns.birth.push(candidate.seed.birth());
                columns.messages.push(claim.messages);
            }
        }
        columns
    }
}

impl Storage {
    /// Runs claims together; one result per claim, in order. What comes back is leased (or committed) by the time it is
    /// here.
    ///
    /// An error of a claim is a [`StorageError`]. After a timeout the claim may have been committed: release by lease id.
    ///
    /// # Cancel safety
    /// A dropped call may leave leases that nobody holds; release by lease id.
    pub async fn claim(&self, claims: &[Claim]) -> Vec<Result<Claimed, Arc<StorageError>>> {
        // What is committed at once has to be on disk; a lease may be forgotten in a crash of the server.
        let relaxed = self.inner.options.relaxed_leases && claims.iter().all(|claim| claim.lease.is_some());
        let mut results: Vec<Option<Result<Claimed, Arc<StorageError>>>> = vec![None; claims.len()];
        let ways: Vec<Option<Short>> = claims.iter().map(Short::of).collect();
        for way in [Short::Known, Short::First] {
            let served: Vec<usize> = (0..claims.len()).filter(|i| ways[*i] == Some(way)).collect();
            if !served.is_empty() {
                let asked: Vec<&Claim> = served.iter().map(|i| &claims[*i]).collect();
                let answers = self.claim_short(way, &asked, relaxed).await;
                book(&mut results, &served, answers.map(|claimed| claimed.into_iter().map(filled).collect()));
            }
        }
        // What got nothing by a short way is asked the long way.
        let rest: Vec<usize> = (0..claims.len()).filter(|i| results[*i].is_none()).collect();
        if !rest.is_empty() {
            let asked: Vec<&Claim> = rest.iter().map(|i| &claims[*i]).collect();
            let answers = self.claim_any(&asked, relaxed).await;
            book(&mut results, &rest, answers.map(|claimed| claimed.into_iter().map(Some).collect()));
        }
        let lost = || Err(Arc::new(StorageError::Misaligned("claim")));
        results.into_iter().map(|result| result.unwrap_or_else(lost)).collect()
    }

    /// Runs any claims together; one result per claim.
    async fn claim_any(&self, claims: &[&Claim], relaxed: bool) -> Result<Vec<Claimed>, StorageError> {
        let columns = Columns::of(claims);
        let mut claimed: Vec<Claimed> = claims.iter().map(|_| Claimed::default()).collect();
        if columns.partition.is_empty() {
            return Ok(claimed);
        }
        let mut conn = self.inner.pool.get().await?;
        let rows = conn
            .query(
                sql::POP_CLAIM,
                &[
                    &columns.pop,
                    &columns.partition,
                    &columns.row,
                    &columns.group,
                    &columns.worker,
                    &columns.lease_seconds,
                    &columns.delayed,
                    &columns.hold,
                    &columns.quiet,
                    &columns.from,
                    &columns.birth,
                    &columns.messages,
                    &relaxed,
                    &WINDOW_BATCH,
                    &BLOB_BYTES_MAX,
                ],
            )
            .await?;
        drop(conn);
        for row in &rows {
            read(row, &columns, &mut claimed)?;
        }
        let whole = claimed.iter().zip(claims).all(|(c, claim)| c.outcomes.len() == claim.candidates.len());
        if whole { Ok(claimed) } else { Err(StorageError::Misaligned("claim")) }
    }
}

/// A claim that got something.
fn filled(claimed: Claimed) -> Option<Claimed> {
    (!claimed.outcomes.is_empty()).then_some(claimed)
}

/// Enters what one statement answered to the claims at these positions, or that it failed.
fn book(
    results: &mut [Option<Result<Claimed, Arc<StorageError>>>],
    positions: &[usize],
    answers: Result<Vec<Option<Claimed>>, StorageError>,
) {
    match answers {
        Ok(answers) => {
            for (i, answer) in positions.iter().zip(answers) {
                results[*i] = answer.map(Ok);
            }
        }
        Err(error) => {
            let error = Arc::new(error);
            for i in positions {
                results[*i] = Some(Err(error.clone()));
            }
        }
    }
}

/// Books one row: the first of each candidate is its outcome, and each is a segment if the candidate was taken.
fn read(row: &Row, columns: &Columns<'_>, claimed: &mut [Claimed]) -> Result<(), StorageError> {
    let misaligned = StorageError::Misaligned("claim");
    let Ok(candidate) = usize::try_from(row.get::<_, i32>(0)) else { return Err(misaligned) };
    let (Some(pop), Some(partition)) = (columns.pop.get(candidate), columns.partition.get(candidate)) else {
        return Err(misaligned);
    };
    let before = columns.pop.partition_point(|p| p < pop);
    let Some(claimed) = usize::try_from(*pop).ok().and_then(|pop| claimed.get_mut(pop)) else {
        return Err(misaligned);
    };
    let address: Option<Tid> = row.get(6);
    let base_offset: Option<Offset> = row.get(8);
    let segment = match (address, base_offset) {
        (Some(address), Some(base_offset)) => Some(ClaimedSegment {
            partition: PartitionId(*partition),
            row: address,
            base_offset,
            first_frame: count(row, 9)?,
            frames: count(row, 10)?,
            created_at: row.get::<_, PgTimestamp>(11).0,
            blob: row.get(12),
            attempt: u32::try_from(row.get::<_, i32>(7)).unwrap_or(1),
        }),
        _ => None,
    };
    let log_end: Option<Offset> = row.get(2);
    if claimed.outcomes.len() == candidate - before {
        claimed.outcomes.push(outcome(row, log_end, address.filter(|_| segment.is_some())));
    }
    if let Some(segment) = segment {
        if let Some(Outcome::Taken { left, .. }) = claimed.outcomes.last_mut() {
            *left = u64::try_from(log_end.unwrap_or(-1) - segment.last_offset()).unwrap_or(0);
        }
        claimed.segments.push(segment);
    }
    Ok(())
}

fn outcome(row: &Row, log_end: Option<Offset>, taken: Option<Tid>) -> Outcome {
    let committed: Option<Offset> = row.get(1);
    let rest = |column: usize| {
        let ms: Option<i32> = row.get(column);
        ms.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0)))
    };
    if let Some(row) = taken {
        return Outcome::Taken { row, left: 0 };
    }
    let (Some(committed), Some(log_end)) = (committed, log_end) else { return Outcome::Nothing };
    if committed > log_end {
        return Outcome::Beyond;
    }
    if committed == log_end {
        return Outcome::Nothing;
    }
    match (rest(3), rest(4), row.get::<_, bool>(5)) {
        (Some(busy), _, _) => Outcome::Busy(busy),
        (None, Some(hidden), _) => Outcome::Hidden(hidden),
        (None, None, true) => Outcome::Spent(u64::try_from(log_end - committed).unwrap_or(0)),
        (None, None, false) => Outcome::Busy(Duration::ZERO),
    }
}

pub(super) fn count(row: &Row, column: usize) -> Result<usize, StorageError> {
    usize::try_from(row.get::<_, i32>(column))
        .map_err(|_| StorageError::Misaligned("a negative frame number"))
}
