//! Deliveries whose answer did not reach the consumer.

use std::time::Duration;

use queen_hotlist::Release;
use queen_types::{Group, LeaseId, PartitionId, QueueName, TenantId};

use crate::Broker;
use crate::announce::Freed;
use crate::api::PopAnswer;

/// Pauses before each attempt to give a lease back.
const PAUSES: [Duration; 2] = [Duration::ZERO, Duration::from_secs(1)];

/// What a pop delivered under a lease, for the case that the answer gets lost.
#[derive(Debug, Clone)]
pub struct Receipt {
    tenant: TenantId,
    /// The queue that was asked, if it was one.
    queue: Option<QueueName>,
    group: Group,
    lease: LeaseId,
    partitions: Vec<PartitionId>,
}

impl Receipt {
    /// The receipt of an answer; `None` when it holds no lease, so that nothing of it can be given back.
    pub fn of(
        tenant: TenantId,
        queue: Option<&QueueName>,
        group: &Group,
        answer: &PopAnswer,
    ) -> Option<Receipt> {
        let lease = answer.lease.clone().filter(|_| !answer.is_empty())?;
        let partitions = answer.partitions.iter().map(|p| p.partition_id).collect();
        Some(Receipt { tenant, queue: queue.cloned(), group: group.clone(), lease, partitions })
    }
}

impl Broker {
    /// Gives back the lease of an answer that nobody got, in the background: its messages are claimable at once, and the
    /// delivery does not count as one. Parts of it that were acked meanwhile stay as they are. Without a runtime, and when
    /// the database is away, the lease expires by itself.
    pub fn give_back(&self, receipt: Receipt) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (inner, tasks) = (self.inner.clone(), self.inner.tasks.clone());
        let returned = async move {
            let Receipt { tenant, queue, group, lease, partitions } = receipt;
            for pause in PAUSES {
                tokio::select! {
                    () = inner.stop.cancelled() => return,
                    () = tokio::time::sleep(pause) => {}
                }
                match inner.storage.release_lease(&partitions, &group, &lease).await {
                    Ok(0) => return,
                    Ok(released) => {
                        tracing::debug!(target: "pop", %lease, released, "gave back the lease of a lost answer");
                        break;
                    }
                    Err(error) => tracing::debug!(target: "pop", %error, "could not give back a lease"),
                }
            }
            for partition in partitions {
                let batch = inner.leases.batch(tenant, &group, &lease, partition);
                let claim = inner.leases.released(&lease, partition);
                if let Some(queue) = batch.map(|batch| batch.queue).or_else(|| queue.clone()) {
                    let freed = Freed { group: &group, partition, claim, release: Release::Open, row: None };
                    inner.released(tenant, &queue, &[freed]);
                }
            }
        };
        tasks.spawn_on(returned, &runtime);
    }
}
