//! Cursors beyond the log: what a failover that lost commits leaves behind. New messages would be skipped silently
//! until their offsets pass the cursor, so it is moved back to the log's end.

use queen_pg::step;
use queen_types::{Group, Offset, PartitionId, Uuid};

use crate::{Storage, StorageError, sql};

impl Storage {
    /// Whether the group's cursor lies beyond the partition's log.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn is_beyond(&self, partition: PartitionId, group: &Group) -> Result<bool, StorageError> {
        let mut conn = self.inner.pool.get().await?;
        let rows = conn.query(sql::POP_PROBE, &[&partition.0, &group.as_str()]).await?;
        Ok(rows.first().and_then(|row| row.get::<_, Option<bool>>(0)).unwrap_or(false))
    }

    /// Clamps cursors that lie beyond their log; returns those that did, with the end they were set to.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn clamp_cursors(
        &self,
        partitions: &[PartitionId],
        group: &Group,
    ) -> Result<Vec<(PartitionId, Offset)>, StorageError> {
        let mut ids: Vec<Uuid> = partitions.iter().map(|p| p.0).collect();
        ids.sort_unstable();
        let mut conn = self.inner.pool.get().await?;
        let mut tx = conn.begin();
        let locked = tx.query(sql::POP_REPAIR_LOCK, &[&ids, &group.as_str()]).await?;
        let held: Vec<Uuid> = locked.iter().map(|row| row.get(0)).collect();
        let answers = tx.commit_with(&[step(sql::POP_REPAIR_CLAMP, &[&held, &group.as_str()])]).await?;
        let rows = answers.first().ok_or(StorageError::Misaligned("clamp"))?;
        let clamped: Vec<_> = rows.iter().map(|row| (PartitionId(row.get(0)), row.get(1))).collect();
        for (partition, end) in &clamped {
            tracing::error!(
                target: "pop", %partition, %group, end,
                "a cursor lay beyond the log (commits lost in a failover?); it is set back to the log's end"
            );
        }
        Ok(clamped)
    }
}
