//! What a commit means for those who wait: one place for every writer, so that none can forget it.

use std::time::Duration;

use queen_hotlist::{ClaimId, Release, RingId};
use queen_storage::pop::{CursorHint, Tid};
use queen_types::{Group, PartitionId, PartitionName, QueueName, TenantId};

use crate::broker::Inner;

/// The lease of a group on a partition that went.
pub(crate) struct Freed<'a> {
    pub(crate) group: &'a Group,
    pub(crate) partition: PartitionId,
    /// What the hot list knows the claim by, if it came from there.
    pub(crate) claim: Option<(RingId, ClaimId)>,
    pub(crate) release: Release,
    /// Where the cursor lies, if that is known.
    pub(crate) row: Option<Tid>,
}

/// Messages that landed in one partition.
pub(crate) struct Landed<'a> {
    pub(crate) partition: PartitionId,
    pub(crate) name: &'a PartitionName,
    pub(crate) messages: usize,
}

impl Inner {
    /// Messages landed in partitions of a queue: they are on the hot list of every group, and as many parked pops of each
    /// wake as partitions became ready; pops of those partitions, and discovery pops, all wake.
    pub(crate) fn landed(&self, tenant: TenantId, queue: &QueueName, landed: &[Landed<'_>]) {
        self.tally.stored(tenant, queue, landed.iter().map(|l| l.messages).sum());
        if !self.options.hotlist {
            self.gates.landed(tenant, queue, landed.len(), |name| landed.iter().any(|l| l.name == name));
            return;
        }
        if let Some(hot) = self.hot.get(tenant, queue) {
            let now = self.hot.now();
            self.hot.change(&hot, |list| {
                for l in landed {
                    list.mark(l.partition, l.name, u32::try_from(l.messages).unwrap_or(u32::MAX), now);
                }
            });
        }
        self.gates.landed(tenant, queue, 0, |name| landed.iter().any(|l| l.name == name));
    }

    /// Leases on partitions of a queue are gone, by acks or because nobody got the answer.
    pub(crate) fn released(&self, tenant: TenantId, queue: &QueueName, freed: &[Freed<'_>]) {
        if self.options.hotlist
            && let Some(hot) = self.hot.get(tenant, queue)
        {
            let now = self.hot.now();
            self.hot.change(&hot, |list| {
                for freed in freed {
                    let ring = freed.claim.map(|(ring, _)| ring).or_else(|| list.find(freed.group));
                    let Some(ring) = ring else { continue };
                    let claim = freed.claim.map(|(_, claim)| claim);
                    list.released(ring, freed.partition, claim, freed.release, now);
                    if let Some(row) = freed.row {
                        list.set_tag(ring, freed.partition, CursorHint::At(row).to_u64());
                    }
                }
            });
        }
        for freed in freed {
            self.held.moved(freed.partition);
            if let Release::Retry { rest } = freed.release {
                self.wake_later(tenant, queue.clone(), freed.group.clone(), rest);
            } else if self.options.hotlist {
                // Those who wait for this very partition, or for whatever there is, are not on the list.
                self.gates.claimable_to_others(tenant, queue, freed.group);
            } else {
                self.gates.claimable(tenant, queue, freed.group, 1);
            }
        }
    }

    /// Wakes those who wait outside the hot list when the retry delay of a partition ends.
    fn wake_later(&self, tenant: TenantId, queue: QueueName, group: Group, delay: Duration) {
        let listed = self.options.hotlist;
        let gates = self.gates.clone();
        let stop = self.stop.clone();
        self.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(delay) => {
                    if listed {
                        gates.claimable_to_others(tenant, &queue, &group);
                    } else {
                        gates.claimable(tenant, &queue, &group, 1);
                    }
                }
            }
        });
    }
}
