//! Leases after the claim: extending them, finding those of other brokers, giving back those that nobody holds.

use queen_pg::{PgTimestamp, Tid};
use queen_types::{Group, LeaseId, PartitionId, TenantId, Timestamp, Uuid};

use crate::{Storage, StorageError, sql};

/// A lease of one partition that was extended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extended {
    /// Its partition.
    pub partition: PartitionId,
    /// Where the cursor lies now.
    pub row: Tid,
    /// When it ends.
    pub expires_at: Timestamp,
}

impl Storage {
    /// Sets the live leases of a claim to the later of their expiry and now + `seconds`; returns one answer
    /// per partition that was still leased.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn extend_lease(
        &self,
        partitions: &[PartitionId],
        group: &Group,
        lease: &LeaseId,
        seconds: i64,
    ) -> Result<Vec<Extended>, StorageError> {
        let ids = ascending(partitions);
        let mut conn = self.inner.pool.get().await?;
        let rows = conn.query(sql::LEASE_EXTEND, &[&ids, &group.as_str(), &lease.as_str(), &seconds]).await?;
        Ok(rows
            .iter()
            .map(|row| Extended {
                partition: PartitionId(row.get(0)),
                row: row.get(1),
                expires_at: row.get::<_, PgTimestamp>(2).0,
            })
            .collect())
    }

    /// Partitions and group of a live lease of the tenant. Walks every cursor: callers limit how often.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn find_lease(
        &self,
        tenant: TenantId,
        lease: &LeaseId,
    ) -> Result<Option<(Vec<PartitionId>, Group)>, StorageError> {
        let mut conn = self.inner.pool.get().await?;
        let rows = conn.query(sql::LEASE_FIND, &[&lease.as_str(), &tenant.0]).await?;
        let Some(first) = rows.first() else { return Ok(None) };
        let group = Group::new(first.get::<_, &str>(1))
            .map_err(|_| StorageError::Misaligned("a stored group name"))?;
        Ok(Some((rows.iter().map(|row| PartitionId(row.get(0))).collect(), group)))
    }

    /// Gives back a lease whose answer nobody got, so that its messages are claimable at once. Returns how many
    /// partitions it still held.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn release_lease(
        &self,
        partitions: &[PartitionId],
        group: &Group,
        lease: &LeaseId,
    ) -> Result<usize, StorageError> {
        let ids = ascending(partitions);
        let mut conn = self.inner.pool.get().await?;
        Ok(conn.query(sql::LEASE_RELEASE, &[&ids, &group.as_str(), &lease.as_str()]).await?.len())
    }
}

fn ascending(partitions: &[PartitionId]) -> Vec<Uuid> {
    let mut ids: Vec<Uuid> = partitions.iter().map(|p| p.0).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}
