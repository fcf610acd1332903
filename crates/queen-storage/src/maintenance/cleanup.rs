//! Removal of what nobody uses any more: empty partitions, and dead letters that were kept long enough.

use queen_pg::PgTimestamp;
use queen_types::{PartitionId, QueueName, TenantId, Timestamp, Uuid};

use super::sql;
use crate::{BEGINNING, Storage, StorageError};

/// A partition that was deleted because nobody used it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unused {
    /// Its id.
    pub id: PartitionId,
    /// Owner.
    pub tenant: TenantId,
    /// Its queue.
    pub queue: QueueName,
}

/// Partitions of one look for unused ones, as cleanup_due.sql has it.
const LOOK: usize = 500;

/// Dead letters of a partition that were kept long enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DlqDue {
    /// The partition.
    pub partition: PartitionId,
    /// Those that failed before.
    pub before: Timestamp,
    /// Where the next step begins.
    from: Timestamp,
}

impl Storage {
    /// Deletes partitions without use for `days`, one batch of at most 500, from the beginning of their list or from where
    /// a batch before this one ended; which, and where the next one begins, `None` at the end.
    ///
    /// A push that races it either keeps the partition alive or makes a new one.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn delete_unused_partitions(
        &self,
        days: u32,
        from: Option<Timestamp>,
    ) -> Result<(Vec<Unused>, Option<Timestamp>), StorageError> {
        let days = i32::try_from(days).unwrap_or(i32::MAX);
        let mut conn = self.inner.pool.get().await?;
        let due = conn.query(sql::CLEANUP_DUE, &[&days, &PgTimestamp(from.unwrap_or(BEGINNING))]).await?;
        let Some(last) = due.last() else { return Ok((Vec::new(), None)) };
        let next = (due.len() >= LOOK).then(|| last.get::<_, PgTimestamp>("last_write_at").into());
        let mut ids: Vec<Uuid> = due.iter().map(|row| row.get("id")).collect();
        ids.sort_unstable();
        let mut tx = conn.begin();
        let locked = tx.query(sql::CLEANUP_LOCK, &[&ids]).await?;
        let locked: Vec<Uuid> = locked.iter().map(|row| row.get("id")).collect();
        tx.query(sql::CLEANUP_CURSORS, &[&locked]).await?;
        let deleted = tx.query(sql::CLEANUP, &[&locked, &days]).await?;
        tx.commit().await?;
        self.inner.known.forget(deleted.iter().map(|row| PartitionId(row.get("id"))));
        let deleted = deleted.iter().map(|row| {
            let queue = QueueName::new(row.get::<_, &str>("queue"))
                .map_err(|_| StorageError::Misaligned("the name of a queue"))?;
            Ok(Unused { id: PartitionId(row.get("id")), tenant: TenantId(row.get("tenant_id")), queue })
        });
        Ok((deleted.collect::<Result<_, StorageError>>()?, next))
    }

    /// Partitions with dead letters that have outlived `dlqRetentionSeconds` of their queue.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn dead_letters_due(&self) -> Result<Vec<DlqDue>, StorageError> {
        let rows = self.inner.pool.get().await?.query(sql::DLQ_DUE, &[]).await?;
        Ok(rows
            .iter()
            .map(|row| DlqDue {
                partition: PartitionId(row.get("partition_id")),
                before: row.get::<_, PgTimestamp>("before").into(),
                from: BEGINNING,
            })
            .collect())
    }

    /// Deletes old dead letters of one partition, at most `rows`, the oldest first, and moves on behind them; how many went.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn dead_letters_step(&self, due: &mut DlqDue, rows: u32) -> Result<i64, StorageError> {
        let mut conn = self.inner.pool.get().await?;
        let rows = conn
            .query(
                sql::DLQ_STEP,
                &[&due.partition.0, &PgTimestamp(due.before), &i64::from(rows), &PgTimestamp(due.from)],
            )
            .await?;
        let Some(row) = rows.first() else { return Ok(0) };
        if let Some(upto) = row.get::<_, Option<PgTimestamp>>("upto") {
            due.from = upto.into();
        }
        Ok(row.get("rows"))
    }
}
