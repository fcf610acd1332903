//! A claim whose answer nobody gets must not hide its messages until the lease ends.

use std::time::Duration;

use queen_types::{Group, LeaseId, PartitionId};

use crate::Broker;

/// When a lease of unknown outcome is given back: soon, and once more for a claim that was still committing then.
const GIVE_BACK_AFTER: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// Gives the lease back unless it is kept: dropped with the pop's future, or on an error after the claim was sent.
pub(super) struct LeaseGuard {
    armed: Option<Armed>,
}

struct Armed {
    broker: Broker,
    group: Group,
    lease: LeaseId,
    partitions: Vec<PartitionId>,
}

impl LeaseGuard {
    pub(super) fn new(broker: &Broker, group: &Group, lease: &LeaseId, partitions: Vec<PartitionId>) -> Self {
        let armed = Armed { broker: broker.clone(), group: group.clone(), lease: lease.clone(), partitions };
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
        // Without a runtime the process is ending; the lease expires by itself.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let stop = armed.broker.inner.stop.clone();
        let tasks = armed.broker.inner.tasks.clone();
        tasks.spawn_on(
            async move {
                for pause in GIVE_BACK_AFTER {
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = tokio::time::sleep(pause) => {}
                    }
                    let storage = &armed.broker.inner.storage;
                    match storage.release_lease(&armed.partitions, &armed.group, &armed.lease).await {
                        Ok(0) => {}
                        Ok(released) => {
                            tracing::debug!(target: "pop", lease = %armed.lease, released, "gave back an unanswered lease");
                            return;
                        }
                        Err(error) => tracing::debug!(target: "pop", %error, "could not give back a lease"),
                    }
                }
            },
            &runtime,
        );
    }
}
