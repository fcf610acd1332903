//! Finding work without a memory of it: scans over the partitions of some queues.

use queen_types::{Group, Namespace, PartitionId, PartitionName, QueueId, QueueName, Task, TenantId, Uuid};

use super::hint::CursorHint;
use crate::{Storage, StorageError, sql};

/// Messages that end the hold of a `windowBuffer` queue early (`QUEEN_HOTLIST_WINDOW_BATCH`).
pub const WINDOW_BATCH: i64 = 100;

/// A partition that a scan found.
#[derive(Debug, Clone)]
pub struct Found {
    /// Position of its queue among those asked for.
    pub queue: usize,
    /// The partition.
    pub partition: PartitionId,
    /// Its name.
    pub name: PartitionName,
    /// The group's cursor lies beyond the log; nothing to claim, something to repair.
    pub beyond: bool,
}

/// A partition where something is probably pending.
#[derive(Debug, Clone)]
pub struct Pending {
    /// The partition.
    pub partition: PartitionId,
    /// Its name.
    pub name: PartitionName,
    /// Messages behind the cursor, about.
    pub messages: u64,
    /// The group's cursor lies beyond the log; nothing to claim, something to repair.
    pub beyond: bool,
    /// Where the group's cursor lies.
    pub cursor: CursorHint,
}

/// A queue that a discovery pop means.
#[derive(Debug, Clone)]
pub struct MatchingQueue {
    /// Row id.
    pub id: QueueId,
    /// Name.
    pub name: QueueName,
}

impl Storage {
    /// Partitions of the queues that the group can probably claim, in random order, at most `limit`.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn candidates(
        &self,
        queues: &[QueueId],
        group: &Group,
        limit: i64,
    ) -> Result<Vec<Found>, StorageError> {
        let ids: Vec<Uuid> = queues.iter().map(|q| q.0).collect();
        let mut conn = self.inner.pool.get().await?;
        let rows = conn.query(sql::POP_CANDIDATES, &[&ids, &group.as_str(), &limit, &WINDOW_BATCH]).await?;
        rows.iter()
            .map(|row| {
                Ok(Found {
                    queue: usize::try_from(row.get::<_, i32>(0))
                        .map_err(|_| StorageError::Misaligned("candidates"))?,
                    partition: PartitionId(row.get(1)),
                    name: stored_name(row.get(2))?,
                    beyond: row.get::<_, Option<bool>>(3).unwrap_or(false),
                })
            })
            .collect()
    }

    /// Queues whose keys are equal to those given.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn matching_queues(
        &self,
        tenant: TenantId,
        namespace: Option<&Namespace>,
        task: Option<&Task>,
    ) -> Result<Vec<MatchingQueue>, StorageError> {
        let mut conn = self.inner.pool.get().await?;
        let rows = conn
            .query(
                sql::POP_MATCHING_QUEUES,
                &[&tenant.0, &namespace.map(Namespace::as_str), &task.map(Task::as_str)],
            )
            .await?;
        rows.iter()
            .map(|row| {
                let name = QueueName::new(row.get::<_, &str>(1))
                    .map_err(|_| StorageError::Misaligned("a stored queue name"))?;
                Ok(MatchingQueue { id: QueueId(row.get(0)), name })
            })
            .collect()
    }

    /// One page of a walk over a queue: partitions behind `after`, by name, where the group probably has something to
    /// claim, visible or not; those of a `windowBuffer` or `delayedProcessing` queue included. Fewer than `rows`: it was
    /// the last page.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn walk(
        &self,
        queue: QueueId,
        group: &Group,
        after: Option<&PartitionName>,
        rows: usize,
    ) -> Result<Vec<Pending>, StorageError> {
        let done = after.map(PartitionName::as_str);
        let from = done.unwrap_or_default();
        let limit = i64::try_from(rows).unwrap_or(i64::MAX);
        let mut conn = self.inner.pool.get().await?;
        let rows = conn.query(sql::POP_WALK, &[&queue.0, &group.as_str(), &from, &limit, &done]).await?;
        rows.iter()
            .map(|row| {
                Ok(Pending {
                    partition: PartitionId(row.get(0)),
                    name: stored_name(row.get(1))?,
                    messages: pending(row.get(3)),
                    beyond: row.get(2),
                    cursor: CursorHint::read(row, 4),
                })
            })
            .collect()
    }

    /// Partitions of the (queue, group) pairs that probably have something to claim, up to 64 of each, with the position
    /// of their pair.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn ready(&self, pairs: &[(QueueId, Group)]) -> Result<Vec<(usize, Pending)>, StorageError> {
        let queues: Vec<Uuid> = pairs.iter().map(|(queue, _)| queue.0).collect();
        let groups: Vec<&str> = pairs.iter().map(|(_, group)| group.as_str()).collect();
        let mut conn = self.inner.pool.get().await?;
        let rows = conn.query(sql::POP_READY, &[&queues, &groups]).await?;
        rows.iter()
            .map(|row| {
                let pair =
                    usize::try_from(row.get::<_, i32>(0)).map_err(|_| StorageError::Misaligned("ready"))?;
                let found = Pending {
                    partition: PartitionId(row.get(1)),
                    name: stored_name(row.get(2))?,
                    messages: pending(row.get(3)),
                    beyond: false,
                    cursor: CursorHint::read(row, 4),
                };
                Ok((pair, found))
            })
            .collect()
    }
}

fn pending(messages: Option<i64>) -> u64 {
    messages.and_then(|n| u64::try_from(n).ok()).unwrap_or(0)
}

fn stored_name(text: &str) -> Result<PartitionName, StorageError> {
    PartitionName::new(text).map_err(|_| StorageError::Misaligned("a stored partition name"))
}
