//! Notes of applications about messages.

use queen_types::{PartitionId, TenantId, Uuid};

use crate::api::{NewTrace, Trace, TraceName};
use crate::{Broker, Error};

impl Broker {
    /// Writes a note about a message, which need not exist; answers its id.
    ///
    /// # Errors
    /// See [`Error`].
    ///
    /// # Cancel safety
    /// A dropped call may have written it.
    pub async fn add_trace(&self, tenant: TenantId, trace: &NewTrace) -> Result<Uuid, Error> {
        Ok(self.inner.storage.add_trace(tenant, trace).await?)
    }

    /// The notes about a message, oldest first.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn traces_of(
        &self,
        tenant: TenantId,
        partition: PartitionId,
        transaction_id: &str,
    ) -> Result<Vec<Trace>, Error> {
        Ok(self.inner.storage.traces_of(tenant, partition, transaction_id).await?)
    }

    /// A page of the notes with a name, oldest first, and how many there are.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn traces_by_name(
        &self,
        tenant: TenantId,
        name: &str,
        limit: i64,
        offset: i64,
    ) -> Result<(Vec<Trace>, i64), Error> {
        Ok(self.inner.storage.traces_by_name(tenant, name, limit, offset).await?)
    }

    /// A page of the names that notes have, most recently used first, and how many there are.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn trace_names(
        &self,
        tenant: TenantId,
        limit: i64,
        offset: i64,
    ) -> Result<(Vec<TraceName>, i64), Error> {
        Ok(self.inner.storage.trace_names(tenant, limit, offset).await?)
    }
}
