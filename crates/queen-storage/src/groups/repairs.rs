//! What seeks and deletions of groups announce to other brokers.

use queen_pg::{Conn, PgTimestamp, Row};
use queen_types::{Group, PartitionName, QueueName, TenantId, Timestamp};

use crate::admin::row::{column, named};
use crate::{Storage, StorageError, sql};

/// Cursors of a group that moved without a push or an ack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// Whose queue.
    pub tenant: TenantId,
    /// The queue.
    pub queue: QueueName,
    /// The group.
    pub group: Group,
    /// The only partition, `None` for the whole queue.
    pub partition: Option<PartitionName>,
    /// When, by the database's clock. Times of different repairs do not tell their order.
    pub at: Timestamp,
}

impl Storage {
    /// The repairs of the last hour.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn repairs(&self) -> Result<Vec<Repair>, StorageError> {
        let mut conn = self.inner.pool.get().await?;
        conn.query(sql::GROUPS_REPAIRS, &[]).await?.iter().map(repair).collect()
    }

    /// Deletes old repairs. One that stays costs nothing but its row, so a failure is not the caller's.
    pub(super) async fn prune_repairs(&self, conn: &mut Conn) {
        if let Err(error) = conn.execute(sql::GROUPS_REPAIRS_PRUNE, &[]).await {
            tracing::debug!(%error, "old repairs were not deleted");
        }
    }
}

fn repair(row: &Row) -> Result<Repair, StorageError> {
    let partition: Option<&str> = column(row, "partition_name")?;
    let at: PgTimestamp = column(row, "repair_at")?;
    Ok(Repair {
        tenant: TenantId(column(row, "tenant_id")?),
        queue: named(row, "queue_name", QueueName::new)?,
        group: named(row, "consumer_group", Group::new)?,
        partition: partition
            .map(PartitionName::new)
            .transpose()
            .map_err(|_| StorageError::Misaligned("partition_name"))?,
        at: at.0,
    })
}
