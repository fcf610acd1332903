//! What a commit means for those who wait: one place for every writer, so that none can forget it.

use queen_hotlist::{ClaimId, Release, RingId};
use queen_types::{Group, PartitionId, PartitionName, QueueName, TenantId};

use crate::broker::Inner;

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

    /// The lease of a group on a partition is gone, by an ack or because nobody got the answer.
    pub(crate) fn released(
        &self,
        tenant: TenantId,
        queue: &QueueName,
        group: &Group,
        partition: PartitionId,
        claim: Option<(RingId, ClaimId)>,
        release: Release,
    ) {
        if !self.options.hotlist {
            self.gates.claimable(tenant, queue, group, 1);
            return;
        }
        if let Some(hot) = self.hot.get(tenant, queue) {
            let now = self.hot.now();
            self.hot.change(&hot, |list| {
                let ring = claim.map(|(ring, _)| ring).or_else(|| list.find(group));
                if let Some(ring) = ring {
                    list.released(ring, partition, claim.map(|(_, claim)| claim), release, now);
                }
            });
        }
        // Those who wait for this very partition, or for whatever there is, are not on the list.
        self.gates.claimable_to_others(tenant, queue, group);
    }
}
