//! Where groups stand.

use queen_pg::{PgTimestamp, Row};
use queen_types::{Group, PartitionId, PartitionName, QueueName, TenantId, Timestamp};

use crate::admin::row::{column, named};
use crate::{Storage, StorageError, sql};

/// A group on a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRow {
    /// The queue.
    pub queue: QueueName,
    /// The group.
    pub group: Group,
    /// Partitions that it stands on.
    pub members: i64,
    /// Those where something is pending.
    pub lagging: i64,
    /// Messages pending.
    pub pending: i64,
    /// Age of the oldest of them, seconds; 0 without any.
    pub age_seconds: i64,
    /// Messages that it ever completed there.
    pub consumed: i64,
    /// `all`, `new` or `timestamp`; `None` when it is not registered.
    pub mode: Option<String>,
    /// Where it begins.
    pub from: Option<Timestamp>,
    /// When it registered.
    pub subscribed_at: Option<Timestamp>,
    /// Whether it asked for the newest message of a partition only.
    pub conflation: bool,
}

/// A group on a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CursorRow {
    /// The queue.
    pub queue: QueueName,
    /// The group.
    pub group: Group,
    /// The partition.
    pub partition_id: PartitionId,
    /// Its name.
    pub partition: PartitionName,
    /// Who holds or held the lease last, unless it was given back.
    pub worker: Option<String>,
    /// The lease has not expired.
    pub leased: bool,
    /// Messages that the group ever completed there.
    pub consumed: i64,
    /// Messages pending, leased ones included.
    pub pending: i64,
    /// When the oldest of them was stored.
    pub oldest_at: Option<Timestamp>,
    /// How long ago, seconds; 0 without any.
    pub age_seconds: i64,
}

impl Storage {
    /// Every group of the tenant on every queue, by queue.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn groups(&self, tenant: TenantId) -> Result<Vec<GroupRow>, StorageError> {
        let mut conn = self.inner.pool.get().await?;
        let every: Option<&str> = None;
        conn.query(sql::GROUPS_LIST, &[&tenant.0, &every]).await?.iter().map(group_row).collect()
    }

    /// The cursors of one group, or of all, by queue and partition; with `behind` only those whose oldest pending
    /// message is older than so many seconds.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn cursors(
        &self,
        tenant: TenantId,
        group: Option<&Group>,
        behind: Option<i64>,
    ) -> Result<Vec<CursorRow>, StorageError> {
        let mut conn = self.inner.pool.get().await?;
        let group = group.map(Group::as_str);
        conn.query(sql::GROUPS_CURSORS, &[&tenant.0, &group, &behind]).await?.iter().map(cursor_row).collect()
    }
}

fn group_row(row: &Row) -> Result<GroupRow, StorageError> {
    let from: Option<PgTimestamp> = column(row, "subscription_timestamp")?;
    let subscribed_at: Option<PgTimestamp> = column(row, "subscribed_at")?;
    Ok(GroupRow {
        queue: named(row, "queue", QueueName::new)?,
        group: named(row, "consumer_group", Group::new)?,
        members: column(row, "members")?,
        lagging: column(row, "lagging")?,
        pending: column(row, "pending")?,
        age_seconds: column(row, "age_seconds")?,
        consumed: column(row, "consumed")?,
        mode: column(row, "subscription_mode")?,
        from: from.map(|at| at.0),
        subscribed_at: subscribed_at.map(|at| at.0),
        conflation: column(row, "conflation")?,
    })
}

fn cursor_row(row: &Row) -> Result<CursorRow, StorageError> {
    let oldest_at: Option<PgTimestamp> = column(row, "oldest_at")?;
    Ok(CursorRow {
        queue: named(row, "queue", QueueName::new)?,
        group: named(row, "consumer_group", Group::new)?,
        partition_id: PartitionId(column(row, "partition_id")?),
        partition: named(row, "partition", PartitionName::new)?,
        worker: column(row, "worker_id")?,
        leased: column(row, "leased")?,
        consumed: column(row, "total_consumed")?,
        pending: column(row, "pending")?,
        oldest_at: oldest_at.map(|at| at.0),
        age_seconds: column(row, "age_seconds")?,
    })
}
