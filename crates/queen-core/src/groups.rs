//! Consumer groups: listing, seeking, forgetting; and what a moved cursor means for those who wait.

use std::time::Instant;

use queen_types::{Group, PartitionName, QueueName, TenantId, Timestamp};

use crate::api::{
    GroupCursor, GroupDeleted, GroupSummary, SeekTo, Sought, SoughtPartition, SubscriptionChanged,
};
use crate::broker::Inner;
use crate::{Broker, Error};

impl Broker {
    /// Every group on every queue.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn groups(&self, tenant: TenantId) -> Result<Vec<GroupSummary>, Error> {
        Ok(self.inner.storage.groups(tenant).await?)
    }

    /// The cursors of one group, by queue and partition; none for a group that nobody knows.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn group(&self, tenant: TenantId, group: &Group) -> Result<Vec<GroupCursor>, Error> {
        Ok(self.inner.storage.cursors(tenant, Some(group), None).await?)
    }

    /// The cursors whose oldest pending message is older than so many seconds.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn lagging(&self, tenant: TenantId, seconds: i64) -> Result<Vec<GroupCursor>, Error> {
        Ok(self.inner.storage.cursors(tenant, None, Some(seconds)).await?)
    }

    /// Sets the cursor of a group on every partition of a queue; leases of the group there are void. `None`: there is no
    /// such queue, or it has no partition.
    ///
    /// # Errors
    /// See [`Error`]. A seek of more than 1000 partitions may be in effect on some of them then; seeking again is safe.
    ///
    /// # Cancel safety
    /// As an error.
    pub async fn seek(
        &self,
        tenant: TenantId,
        queue: &QueueName,
        group: &Group,
        to: SeekTo,
    ) -> Result<Option<Sought>, Error> {
        let sought = self.inner.storage.seek_queue(tenant, queue, group, to).await;
        // Some of it may be in effect even if it failed.
        self.inner.moved(tenant, queue, group);
        Ok(sought?.map(|sought| Sought { partitions: sought.partitions }))
    }

    /// Sets the cursor of a group on one partition; a lease of the group there is void. `None`: there is no such
    /// partition.
    ///
    /// # Errors
    /// See [`Error`].
    ///
    /// # Cancel safety
    /// A dropped call may have done it; seeking again is safe.
    pub async fn seek_partition(
        &self,
        tenant: TenantId,
        queue: &QueueName,
        partition: &PartitionName,
        group: &Group,
        to: SeekTo,
    ) -> Result<Option<SoughtPartition>, Error> {
        let sought = self.inner.storage.seek_partition(tenant, queue, partition, group, to).await;
        self.inner.moved(tenant, queue, group);
        Ok(sought?.map(|partition| SoughtPartition { partition }))
    }

    /// Changes where a group begins on partitions that it has no cursor on; no cursor moves.
    ///
    /// # Errors
    /// See [`Error`].
    ///
    /// # Cancel safety
    /// A dropped call may have done it.
    pub async fn change_subscription(
        &self,
        tenant: TenantId,
        group: &Group,
        from: Timestamp,
    ) -> Result<SubscriptionChanged, Error> {
        let queues = self.inner.storage.change_subscription(tenant, group, from).await?;
        self.inner.caches.forget_group(tenant, None, group);
        Ok(SubscriptionChanged { from, queues })
    }

    /// Forgets a group on one queue, or on all: its cursors and leases, and with `registrations` where it began, so that
    /// its next pop is a first contact.
    ///
    /// # Errors
    /// See [`Error`].
    ///
    /// # Cancel safety
    /// A dropped call may have done it; deleting again is safe.
    pub async fn delete_group(
        &self,
        tenant: TenantId,
        group: &Group,
        queue: Option<&QueueName>,
        registrations: bool,
    ) -> Result<GroupDeleted, Error> {
        let deleted = self.inner.storage.delete_group(tenant, group, queue, registrations).await?;
        self.inner.caches.forget_group(tenant, queue, group);
        for queue in &deleted.queues {
            self.inner.moved(tenant, queue, group);
        }
        Ok(GroupDeleted { partitions: deleted.cursors, registration: deleted.registrations > 0 })
    }

    /// Wakes the parked pops of a queue, as a hint from elsewhere that something landed: in one partition, or anywhere.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn notify(
        &self,
        tenant: TenantId,
        queue: &QueueName,
        partition: Option<&PartitionName>,
    ) -> Result<(), Error> {
        let inner = &self.inner;
        if let Some(name) = partition {
            let key = queen_storage::PartitionKey { tenant, queue: queue.clone(), partition: name.clone() };
            if let Some(partition) = inner.storage.partition_id(&key).await? {
                inner.landed(tenant, queue, &[crate::announce::Landed { partition, name, messages: 1 }]);
                return Ok(());
            }
        }
        inner.hot.distrust(tenant, queue);
        inner.gates.wake_everybody_of(tenant, queue);
        Ok(())
    }
}

impl Inner {
    /// Cursors of a group moved without a push or an ack: what is known of its partitions is void, and its parked pops
    /// look again. The hot list's ring begins anew, with a walk.
    pub(crate) fn moved(&self, tenant: TenantId, queue: &QueueName, group: &Group) {
        self.hot.forget_group(tenant, queue, group);
        self.gates.claimable(tenant, queue, group, usize::MAX);
        self.gates.claimable_to_others(tenant, queue, group);
    }

    /// Applies what other brokers announced since the last time.
    pub(crate) async fn reconcile(&self, applied: &mut crate::reconcile::Applied) -> Result<(), Error> {
        let started = Instant::now();
        for repair in applied.fresh(self.storage.repairs().await?) {
            self.caches.lapse(repair.tenant, &repair.queue, &repair.group);
            self.moved(repair.tenant, &repair.queue, &repair.group);
        }
        tracing::trace!(target: "reconcile", took = ?started.elapsed(), "repairs were read");
        Ok(())
    }
}
