use std::time::Duration;

use queen_types::{PartitionId, PartitionName};

/// Name of one life of a ring. Copied freely; that of a ring which is gone does nothing anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RingId {
    pub(crate) slot: u32,
    pub(crate) born: u64,
}

/// Name of one claim, by which the ack that ends its lease is told from an ack of an earlier lease that was announced
/// late. A broker keeps it with the leases that it gave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClaimId(pub(crate) u32);

/// What the claim of one candidate came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The claim did not get to it: the budget was spent before, the call failed, or its future was dropped.
    NotEvaluated,
    /// Claimable, but the budget was spent before its turn came; `left` messages are pending.
    Pending {
        /// Messages behind the cursor.
        left: u64,
    },
    /// Messages were taken under a lease of this length. `left` messages of the partition lie behind them, visible
    /// or not, as the claim read its tail; 0 means drained.
    Took {
        /// How long the lease lasts.
        lease: Duration,
        /// Messages behind the batch.
        left: u64,
    },
    /// Messages were taken and committed at once. `left` as in [`Verdict::Took`].
    TookAutoAck {
        /// Messages behind the batch.
        left: u64,
    },
    /// Not claimable for `rest`, by the database's clock: a live lease, a lock, or a retry delay.
    Leased {
        /// Until it is claimable.
        rest: Duration,
    },
    /// Something is pending, and none of it is visible for `rest`, by the database's clock.
    Deferred {
        /// Until something is visible.
        rest: Duration,
    },
    /// Nothing visible is pending, by a fresh read. `hidden`: something may be there that is not visible yet, and
    /// the claim could not say when it will be; it matters on deferral queues alone.
    Empty {
        /// Whether invisible messages may be there.
        hidden: bool,
    },
}

/// One partition of a checkout.
#[derive(Debug)]
pub struct Candidate {
    /// The partition to claim.
    pub partition: PartitionId,
    /// Its name.
    pub name: PartitionName,
    /// What [`HotQueue::set_tag`](crate::HotQueue::set_tag) left with it; 0: nothing.
    pub tag: u64,
    pub(crate) index: u32,
    pub(crate) epoch: u32,
    pub(crate) count: u16,
    pub(crate) verdict: Verdict,
}

/// Partitions that one pop has to itself until it gives them back with
/// [`HotQueue::checkin`](crate::HotQueue::checkin), which consumes this value: a checkout cannot end twice.
///
/// Verdicts are noted in the value as they become known; whatever has none counts as [`Verdict::NotEvaluated`]. A
/// guard that checks in when it is dropped is therefore all a pop needs, on every path.
///
/// A checkout that is lost all the same holds its partitions back until the next reseed row of each.
#[derive(Debug)]
#[must_use = "the partitions stay in flight until the checkout is checked in"]
pub struct Checkout {
    pub(crate) ring: RingId,
    pub(crate) ticket: u64,
    pub(crate) candidates: Vec<Candidate>,
}

impl Checkout {
    /// The ring that it came from.
    pub fn ring(&self) -> RingId {
        self.ring
    }

    /// The name of the claim that is made for it.
    pub fn claim(&self) -> ClaimId {
        ClaimId::of(self.ticket)
    }

    /// The candidates, longest ready first. At least one.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Notes the verdict of a candidate, by its position; the last one counts. False when there is no such position.
    pub fn note(&mut self, position: usize, verdict: Verdict) -> bool {
        self.candidates.get_mut(position).map(|candidate| candidate.verdict = verdict).is_some()
    }

    /// Notes the verdict of a candidate, by its partition. False when it is not among them.
    pub fn note_partition(&mut self, partition: PartitionId, verdict: Verdict) -> bool {
        let found = self.candidates.iter_mut().find(|candidate| candidate.partition == partition);
        found.map(|candidate| candidate.verdict = verdict).is_some()
    }
}

impl ClaimId {
    pub(crate) fn of(ticket: u64) -> ClaimId {
        ClaimId(ticket as u32)
    }
}

/// What the end of a lease left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// Everything that was leased is done.
    Covered,
    /// Part of it is to be delivered again, at once.
    Open,
    /// Part of it is to be delivered again, after the retry delay that remains.
    Retry {
        /// Until it is claimable.
        rest: Duration,
    },
}
