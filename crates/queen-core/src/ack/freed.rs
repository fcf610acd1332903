use std::time::Duration;

use queen_pg::Tid;
use queen_types::{Group, LeaseId, PartitionId, QueueName, TenantId};

use crate::broker::Inner;

/// A lease that an ack took from a cursor, committed: the group can claim the partition again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Freed<'a> {
    pub(crate) tenant: TenantId,
    pub(crate) queue: &'a QueueName,
    pub(crate) group: &'a Group,
    pub(crate) partition: PartitionId,
    /// The lease that went.
    pub(crate) lease: Option<&'a LeaseId>,
    /// Where the cursor lies now, when that is known.
    pub(crate) row: Option<Tid>,
    /// Not claimable for so long, milliseconds.
    pub(crate) delay_ms: Option<i64>,
}

impl Inner {
    /// Tells whoever waits for it, at once or when the delay ends. The one place that learns of leases that acks end.
    pub(crate) fn freed(&self, freed: &Freed<'_>) {
        tracing::trace!(
            target: "ack", partition = %freed.partition, group = %freed.group, lease = freed.lease.map(LeaseId::as_str),
            row = freed.row.map(tracing::field::display), "a lease is gone"
        );
        match freed.delay_ms {
            None | Some(0) => self.gates.claimable(freed.tenant, freed.queue, freed.group, 1),
            Some(delay) => self.wake_later(freed.tenant, freed.queue.clone(), freed.group.clone(), delay),
        }
    }

    /// Wakes a group when the retry delay of a partition ends.
    fn wake_later(&self, tenant: TenantId, queue: QueueName, group: Group, delay_ms: i64) {
        let gates = self.gates.clone();
        let stop = self.stop.clone();
        let delay = Duration::from_millis(u64::try_from(delay_ms).unwrap_or(0));
        self.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(delay) => gates.claimable(tenant, &queue, &group, 1),
            }
        });
    }
}
