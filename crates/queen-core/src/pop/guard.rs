//! A claim whose answer nobody gets must not hide its messages until the lease ends.

use std::sync::Arc;
use std::time::Duration;

use queen_hotlist::Release;
use queen_types::{Group, LeaseId, PartitionId};

use super::Claimant;
use crate::announce::Freed;
use crate::broker::Inner;

/// When a lease of unknown outcome is given back: soon, and once more for a claim that was still committing then.
const GIVE_BACK_AFTER: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// Gives the lease back unless it is kept: dropped with the pop's future, or on an error after the claim was sent.
pub(super) struct LeaseGuard {
    armed: Option<Armed>,
}

struct Armed {
    inner: Arc<Inner>,
    group: Group,
    lease: LeaseId,
    partitions: Vec<PartitionId>,
    origin: Option<Claimant>,
}

impl LeaseGuard {
    pub(super) fn new(
        inner: &Arc<Inner>,
        group: &Group,
        lease: &LeaseId,
        partitions: Vec<PartitionId>,
        origin: Option<Claimant>,
    ) -> Self {
        let armed =
            Armed { inner: inner.clone(), group: group.clone(), lease: lease.clone(), partitions, origin };
        LeaseGuard { armed: Some(armed) }
    }

    /// The answer is on its way; the lease is the consumer's.
    pub(super) fn keep(mut self) {
        self.armed = None;
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        let Some(armed) = self.armed.take() else { return };
        give_back(&armed.inner, armed.group, armed.lease, armed.partitions, armed.origin, &GIVE_BACK_AFTER);
    }
}

/// Releases a lease in the background, after each of some pauses until there was something to release.
pub(super) fn give_back(
    inner: &Arc<Inner>,
    group: Group,
    lease: LeaseId,
    partitions: Vec<PartitionId>,
    origin: Option<Claimant>,
    pauses: &'static [Duration],
) {
    // Without a runtime the process is ending; the lease expires by itself.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    let stop = inner.stop.clone();
    let tasks = inner.tasks.clone();
    let inner = inner.clone();
    tasks.spawn_on(
        async move {
            for pause in pauses {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(*pause) => {}
                }
                match inner.storage.release_lease(&partitions, &group, &lease).await {
                    Ok(0) => {}
                    Ok(released) => {
                        tracing::debug!(target: "pop", %lease, released, "gave back an unanswered lease");
                        if let Some((hot, ring, claim)) = origin {
                            let freed = |partition| Freed {
                                group: &group,
                                partition,
                                claim: Some((ring, claim)),
                                release: Release::Open,
                                row: None,
                            };
                            let freed: Vec<Freed<'_>> = partitions.into_iter().map(freed).collect();
                            inner.released(hot.tenant, &hot.queue, &freed);
                        }
                        return;
                    }
                    Err(error) => tracing::debug!(target: "pop", %error, "could not give back a lease"),
                }
            }
        },
        &runtime,
    );
}
