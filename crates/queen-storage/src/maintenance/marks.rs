//! The notes on partitions that retention goes by: when their oldest rows were stored. A push does not write its
//! partition (decision 001), so one that finds no note remembers the partition here, and the notes are written together
//! soon after. A note that a crash lost is written by the next push, or by a walk.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use queen_pg::step;
use queen_types::{PartitionId, Uuid};
use tokio::sync::Notify;

use super::sql;
use crate::{Storage, StorageError, sql::PUSH_LOCK};

/// Partitions of one transaction.
const BATCH: usize = 500;
/// Partitions that are remembered at most. Whatever is beyond is left to the walk.
const REMEMBERED_MAX: usize = 1_000_000;

#[derive(Default)]
pub(crate) struct Marks {
    opened: Mutex<BTreeSet<PartitionId>>,
    some: Notify,
}

impl Marks {
    /// Remembers partitions into which something was appended that had no note.
    pub(crate) fn opened(&self, partitions: impl Iterator<Item = PartitionId>) {
        let mut opened = self.opened.lock();
        let before = opened.len();
        if before < REMEMBERED_MAX {
            opened.extend(partitions);
        }
        if before == 0 && !opened.is_empty() {
            self.some.notify_one();
        }
    }
}

impl Storage {
    /// Waits until there are notes to write.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost when it is dropped.
    pub async fn marks_wanted(&self) {
        loop {
            if !self.inner.marks.opened.lock().is_empty() {
                return;
            }
            self.inner.marks.some.notified().await;
        }
    }

    /// Writes the notes that pushes asked for; how many partitions were noted. What failed is tried again later.
    ///
    /// # Errors
    /// See [`StorageError`].
    ///
    /// # Cancel safety
    /// Dropped, the notes of one transaction are left to the next push or the walk.
    pub async fn write_marks(&self) -> Result<usize, StorageError> {
        let mut written = 0;
        loop {
            let batch: Vec<PartitionId> = {
                let mut opened = self.inner.marks.opened.lock();
                let batch: Vec<PartitionId> = opened.iter().take(BATCH).copied().collect();
                batch.iter().for_each(|id| {
                    opened.remove(id);
                });
                batch
            };
            if batch.is_empty() {
                return Ok(written);
            }
            if let Err(error) = self.mark(&batch).await {
                self.inner.marks.opened(batch.into_iter());
                return Err(error);
            }
            written += batch.len();
        }
    }

    /// Writes the notes of these partitions from what the tables have.
    async fn mark(&self, partitions: &[PartitionId]) -> Result<(), StorageError> {
        let mut ids: Vec<Uuid> = partitions.iter().map(|p| p.0).collect();
        ids.sort_unstable();
        let mut conn = self.inner.pool.get().await?;
        conn.transact(&[step(PUSH_LOCK, &[&ids]), step(sql::MARK, &[&ids])]).await?;
        Ok(())
    }

    /// Looks at the notes of the partitions beyond an id, a page of them, and mends wrong ones. Returns where to go on,
    /// `None` at the end, and how many were wrong.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn mend_marks(
        &self,
        beyond: Option<PartitionId>,
    ) -> Result<(Option<PartitionId>, usize), StorageError> {
        let beyond = beyond.map_or(Uuid::nil(), |id| id.0);
        let rows = self.inner.pool.get().await?.query(sql::WALK, &[&beyond]).await?;
        let wrong: Vec<PartitionId> =
            rows.iter().filter(|row| row.get("wrong")).map(|row| PartitionId(row.get("id"))).collect();
        for batch in wrong.chunks(BATCH) {
            self.mark(batch).await?;
        }
        Ok((rows.last().map(|row| PartitionId(row.get("id"))), wrong.len()))
    }
}
