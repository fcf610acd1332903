//! Stored messages and dead letters, beside producing and consuming them.

use queen_admission::Lane;
use queen_storage::messages::{Address, Replayed};
use queen_types::{Group, PartitionId, QueueName, TenantId};

use crate::announce::Landed;
use crate::api::{BrowseFilter, BrowsePage, MessageDetail, ReplayOutcome, ReplayTarget};
use crate::{Broker, Error};

impl Broker {
    /// A page of stored messages, newest first. Consumes nothing.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn browse(&self, tenant: TenantId, filter: &BrowseFilter) -> Result<BrowsePage, Error> {
        Ok(self.inner.storage.browse(tenant, filter).await?)
    }

    /// One message by its address; `None` when neither it nor a dead letter of it is there.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn message(
        &self,
        tenant: TenantId,
        partition: PartitionId,
        transaction_id: &str,
    ) -> Result<Option<MessageDetail>, Error> {
        Ok(self.inner.storage.message(tenant, partition, transaction_id).await?)
    }

    /// Moves a dead letter to the end of its partition as a new message, whose key is `dlq:` and the record's id, in one
    /// transaction.
    ///
    /// # Errors
    /// See [`Error`].
    ///
    /// # Cancel safety
    /// A dropped call may have done it; replaying again is safe.
    pub async fn replay(&self, tenant: TenantId, target: &ReplayTarget) -> Result<ReplayOutcome, Error> {
        if self.inner.modes.push() {
            return Ok(ReplayOutcome::Maintenance);
        }
        let address = match target {
            ReplayTarget::Record(id) => Address::Record(*id),
            ReplayTarget::Message { partition, transaction_id } => {
                Address::Message(*partition, transaction_id)
            }
        };
        let admitted = self.inner.admission.enter(Lane::Push, tenant).await?;
        let replayed = self.inner.storage.replay(tenant, address).await?;
        if let Replayed::Moved { commit, .. } = &replayed {
            admitted.committed_work(*commit, 1);
        }
        drop(admitted);
        Ok(match replayed {
            Replayed::Moved { replay, message_id, offset, .. } => {
                let (partition, name) = (replay.partition_id, &replay.partition);
                self.inner.landed(tenant, &replay.queue, &[Landed { partition, name, messages: 1 }]);
                ReplayOutcome::Moved { replay, message_id, offset }
            }
            Replayed::Duplicate { replay, message_id } => ReplayOutcome::Duplicate { replay, message_id },
            Replayed::Missing => ReplayOutcome::Missing,
            Replayed::Empty(replay) => ReplayOutcome::Empty(replay),
        })
    }

    /// Deletes the dead letters of a message, of all groups; answers how many. The message itself stays.
    ///
    /// # Errors
    /// See [`Error`].
    ///
    /// # Cancel safety
    /// A dropped call may have done it.
    pub async fn delete_dead_letters(
        &self,
        tenant: TenantId,
        partition: PartitionId,
        transaction_id: &str,
    ) -> Result<u64, Error> {
        Ok(self.inner.storage.delete_dead_letters(tenant, partition, transaction_id).await?)
    }

    /// Deletes the dead letters of a queue, of one group or of all; answers how many.
    ///
    /// # Errors
    /// See [`Error`]; some may be deleted then.
    ///
    /// # Cancel safety
    /// As an error.
    pub async fn purge_dead_letters(
        &self,
        tenant: TenantId,
        queue: &QueueName,
        group: Option<&Group>,
    ) -> Result<u64, Error> {
        Ok(self.inner.storage.purge_dead_letters(tenant, queue, group).await?)
    }
}
