//! The common claim: cursors whose address is known, of queues that hold nothing back.

use queen_pg::{PgTimestamp, Row, Tid};
use queen_types::{LeaseId, Offset, PartitionId, Uuid};

use super::claim::{BLOB_BYTES_MAX, Claim, Claimed, ClaimedSegment, Outcome, count};
use crate::{Storage, StorageError, sql};

/// Whether `pop/claim_known.sql` can serve a claim.
pub(super) fn serves(claim: &Claim) -> bool {
    claim.lease.is_some() && claim.candidates.iter().all(|c| c.row.is_some() && c.delayed <= 0 && c.hold <= 0)
}

impl Storage {
    /// Runs claims that [`serves`] accepts together; one result per claim. A claim that got nothing has no outcomes: the
    /// other statement says why. Where a claim got something, candidates that were not leased are left open.
    pub(super) async fn claim_known(
        &self,
        claims: &[&Claim],
        relaxed: bool,
    ) -> Result<Vec<Claimed>, StorageError> {
        let mut pop: Vec<i32> = Vec::new();
        let mut partition: Vec<Uuid> = Vec::new();
        let mut row: Vec<Option<Tid>> = Vec::new();
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
                row.push(candidate.row);
                group.push(claim.group.as_str());
                worker.push(claim.lease.as_ref().map(LeaseId::as_str));
                lease_seconds.push(candidate.lease_seconds);
                messages.push(claim.messages);
            }
        }
        let mut conn = self.inner.pool.get().await?;
        let rows = conn
            .query(
                sql::POP_CLAIM_KNOWN,
                &[
                    &pop,
                    &partition,
                    &row,
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
