use std::sync::{Arc, Weak};
use std::time::Duration;

use queen_hotlist::{Candidate, Checkout, ClaimId, RingId, Verdict};
use queen_storage::pop::{CursorHint, Outcome};
use queen_types::PartitionId;

use super::Hot;
use crate::broker::Inner;

/// A checkout that ends when it is dropped, whatever became of its claim.
pub(crate) struct Guard {
    inner: Weak<Inner>,
    hot: Arc<Hot>,
    checkout: Option<Checkout>,
    /// Where the claim left the cursors.
    cursors: Vec<(PartitionId, CursorHint)>,
}

impl Guard {
    /// Takes up to `partitions` ready partitions that hold about `messages`; `None` when nothing is ready.
    pub(crate) fn take(
        inner: &Arc<Inner>,
        hot: &Arc<Hot>,
        ring: RingId,
        partitions: usize,
        messages: u64,
    ) -> Option<Guard> {
        let now = inner.hot.now();
        let checkout = inner.hot.change(hot, |list| {
            list.tick(now);
            list.checkout(ring, partitions, messages, now)
        })?;
        Some(Guard {
            inner: Arc::downgrade(inner),
            hot: hot.clone(),
            checkout: Some(checkout),
            cursors: Vec::new(),
        })
    }

    pub(crate) fn candidates(&self) -> &[Candidate] {
        self.checkout.as_ref().map_or(&[], Checkout::candidates)
    }

    /// What a later release of the lease is known by.
    pub(crate) fn claim(&self) -> Option<(Arc<Hot>, RingId, ClaimId)> {
        let checkout = self.checkout.as_ref()?;
        Some((self.hot.clone(), checkout.ring(), checkout.claim()))
    }

    /// Notes what a claim found, one outcome per candidate; `lease`: what it leased for, `None` for auto-ack.
    pub(crate) fn note(&mut self, outcomes: &[Outcome], lease: Option<Duration>) {
        let Some(checkout) = &mut self.checkout else { return };
        for (position, outcome) in outcomes.iter().enumerate() {
            if let Some(candidate) = checkout.candidates().get(position)
                && let Some(hint) = left(*outcome, CursorHint::from_u64(candidate.tag))
            {
                self.cursors.push((candidate.partition, hint));
            }
            checkout.note(position, verdict(*outcome, lease));
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let (Some(checkout), Some(inner)) = (self.checkout.take(), self.inner.upgrade()) else { return };
        let now = inner.hot.now();
        let (ring, cursors) = (checkout.ring(), std::mem::take(&mut self.cursors));
        inner.hot.change(&self.hot, |list| {
            list.checkin(checkout, now);
            for (partition, hint) in cursors {
                list.set_tag(ring, partition, hint.to_u64());
            }
        });
    }
}

/// Where a claim that went by `hint` left the cursor; `None`: the hint is as good as it was.
fn left(outcome: Outcome, hint: CursorHint) -> Option<CursorHint> {
    match outcome {
        Outcome::Taken { row, .. } => Some(CursorHint::At(row)),
        Outcome::Spent(_) => None,
        // The next claim looks for it, and makes it should it be gone.
        Outcome::Open | Outcome::Nothing => Some(CursorHint::Unknown),
        // A first claim that was refused: somebody else made the cursor, or is about to.
        _ => matches!(hint, CursorHint::Missing { .. }).then_some(CursorHint::Unknown),
    }
}

fn verdict(outcome: Outcome, lease: Option<Duration>) -> Verdict {
    match outcome {
        Outcome::Taken { left, .. } => match lease {
            Some(lease) => Verdict::Took { lease, left },
            None => Verdict::TookAutoAck { left },
        },
        Outcome::Nothing | Outcome::Beyond => Verdict::Empty { hidden: false },
        Outcome::Busy(rest) => Verdict::Leased { rest },
        Outcome::Hidden(rest) => Verdict::Deferred { rest },
        Outcome::Spent(left) => Verdict::Pending { left },
        Outcome::Open => Verdict::NotEvaluated,
    }
}
