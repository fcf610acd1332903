//! The exact backlog of a queue.

use queen_pg::{Pool, Row};
use queen_types::{Group, PartitionName, QueueName, TenantId};

use super::row::{column, named};
use super::sql;
use crate::StorageError;

/// Backlog of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionDepth {
    /// The partition.
    pub partition: PartitionName,
    /// Messages owed, leased ones included.
    pub pending: i64,
    /// How many of them are under a live lease.
    pub processing: i64,
}

/// Backlog of every partition by name, zeros included; `None` when there is no such queue.
///
/// With a group: what that group owes; a group without a cursor (also one that nobody knows) owes everything
/// retained. Without: what the furthest-behind view owes, and `processing` counts the leases of all groups.
///
/// # Errors
/// [`StorageError::Pg`] when the database was not reached; [`StorageError::Misaligned`] on a row that this product does not write.
pub async fn depth(
    pool: &Pool,
    tenant: TenantId,
    queue: &QueueName,
    group: Option<&Group>,
) -> Result<Option<Vec<PartitionDepth>>, StorageError> {
    let mut conn = pool.get().await?;
    let name = queue.as_str();
    let rows = match group {
        None => conn.query(sql::DEPTH_WORST, &[&tenant.0, &name]).await?,
        Some(group) => conn.query(sql::DEPTH_GROUP, &[&tenant.0, &name, &group.as_str()]).await?,
    };
    if rows.is_empty() {
        return Ok(None);
    }
    let partitions = rows.iter().map(decode).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(partitions.into_iter().flatten().collect()))
}

/// `None` for the lone row of a queue without partitions.
fn decode(row: &Row) -> Result<Option<PartitionDepth>, StorageError> {
    if column::<Option<&str>>(row, "partition")?.is_none() {
        return Ok(None);
    }
    Ok(Some(PartitionDepth {
        partition: named(row, "partition", PartitionName::new)?,
        pending: column(row, "pending")?,
        processing: column(row, "processing")?,
    }))
}
