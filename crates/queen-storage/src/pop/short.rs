//! The common claims, of queues that hold nothing back: cursors whose address is known, and first claims.

use queen_pg::{PgTimestamp, Row, Tid};
use queen_types::{LeaseId, Offset, PartitionId, Uuid};

use super::claim::{BLOB_BYTES_MAX, Candidate, Claim, Claimed, ClaimedSegment, Outcome, count};
use super::hint::CursorHint;
use super::register::Seed;
use crate::{Storage, StorageError, sql};

/// A statement that serves some claims at a fraction of what `pop/claim.sql` costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Short {
    /// `pop/claim_known.sql`: every cursor's address is known.
    Known,
    /// `pop/claim_first.sql`: there is no cursor yet, and the group reads everything.
    First,
}

impl Short {
    /// The statement that can serve a claim.
    pub(super) fn of(claim: &Claim) -> Option<Self> {
        claim.lease.as_ref()?;
        let way = |c: &Candidate| match c.cursor {
            _ if c.delayed > 0 || c.hold > 0 => None,
            CursorHint::At(_) => Some(Short::Known),
            CursorHint::Missing { .. } if c.seed == Seed::Everything => Some(Short::First),
            CursorHint::Missing { .. } | CursorHint::Unknown => None,
        };
        let mut ways = claim.candidates.iter().map(way);
        let first = ways.next()??;
        ways.all(|way| way == Some(first)).then_some(first)
    }

    fn sql(self) -> &'static str {
        match self {
            Short::Known => sql::POP_CLAIM_KNOWN,
            Short::First => sql::POP_CLAIM_FIRST,
        }
    }
}

impl Storage {
    /// Runs claims that one short statement serves together; one result per claim. A claim that got nothing has no outcomes: the
    /// other statement says why. Where a claim got something, candidates that were not leased are left open.
    pub(super) async fn claim_short(
        &self,
        way: Short,
        claims: &[&Claim],
        relaxed: bool,
    ) -> Result<Vec<Claimed>, StorageError> {
        let mut pop: Vec<i32> = Vec::new();
        let mut partition: Vec<Uuid> = Vec::new();
        let mut address: Vec<Option<Tid>> = Vec::new();
        let mut group: Vec<&str> = Vec::new();
        let mut worker: Vec<Option<&str>> = Vec::new();
        let mut lease_seconds: Vec<i32> = Vec::new();
        let mut messages: Vec<i64> = Vec::new();
        let mut places: Vec<(usize, usize)> = Vec::new();
        for (number, claim) in claims.iter().enumerate() {
            for (position, candidate) in claim.candidates.iter().enumerate() {
                places.push((number, position));
                pop.push(i32::try_from(number).unwrap_or(i32::MAX));
                partition.push(candidate.partition.0);
                address.push(match candidate.cursor {
                    CursorHint::At(row) => Some(row),
                    CursorHint::Missing { home } => Some(home),
                    CursorHint::Unknown => None,
                });
                group.push(claim.group.as_str());
                worker.push(claim.lease.as_ref().map(LeaseId::as_str));
                lease_seconds.push(candidate.lease_seconds);
                messages.push(claim.messages);
            }
        }
        let mut conn = self.inner.pool.get().await?;
        let rows = conn
            .query(
                way.sql(),
                &[
                    &pop,
                    &partition,
                    &address,
                    &group,
                    &worker,
                    &lease_seconds,
                    &messages,
                    &relaxed,
                    &BLOB_BYTES_MAX,
                ],
            )
            .await?;
        drop(conn);
        let mut claimed: Vec<Claimed> = claims.iter().map(|_| Claimed::default()).collect();
        for row in &rows {
            let place = usize::try_from(row.get::<_, i32>(0)).ok().and_then(|i| places.get(i));
            let Some(&(number, position)) = place else { return Err(StorageError::Misaligned("claim")) };
            let (Some(claim), Some(claimed)) = (claims.get(number), claimed.get_mut(number)) else {
                return Err(StorageError::Misaligned("claim"));
            };
            if claimed.outcomes.is_empty() {
                claimed.outcomes = vec![Outcome::Open; claim.candidates.len()];
            }
            book(row, claim, position, claimed)?;
        }
        Ok(claimed)
    }
}

fn book(row: &Row, claim: &Claim, position: usize, claimed: &mut Claimed) -> Result<(), StorageError> {
    let (Some(candidate), Some(outcome)) =
        (claim.candidates.get(position), claimed.outcomes.get_mut(position))
    else {
        return Err(StorageError::Misaligned("claim"));
    };
    let (log_end, address): (Offset, Tid) = (row.get(1), row.get(2));
    let segment = ClaimedSegment {
        partition: PartitionId(candidate.partition.0),
        row: address,
        base_offset: row.get(4),
        first_frame: count(row, 5)?,
        frames: count(row, 6)?,
        created_at: row.get::<_, PgTimestamp>(7).0,
        blob: row.get(8),
        attempt: u32::try_from(row.get::<_, i32>(3)).unwrap_or(1),
    };
    let left = u64::try_from(log_end - segment.last_offset()).unwrap_or(0);
    *outcome = Outcome::Taken { row: address, left };
    claimed.segments.push(segment);
    Ok(())
}
