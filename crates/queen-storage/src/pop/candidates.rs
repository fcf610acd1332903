//! Finding work without a memory of it: scans over the partitions of some queues.

use queen_types::{Group, Namespace, PartitionId, PartitionName, QueueId, QueueName, Task, TenantId, Uuid};

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

    /// The (queue, group) pairs that probably have something to claim, by position, with how many partitions they can
    /// claim (counted up to 64).
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn ready(&self, pairs: &[(QueueId, Group)]) -> Result<Vec<(usize, usize)>, StorageError> {
        let queues: Vec<Uuid> = pairs.iter().map(|(queue, _)| queue.0).collect();
        let groups: Vec<&str> = pairs.iter().map(|(_, group)| group.as_str()).collect();
        let mut conn = self.inner.pool.get().await?;
        let rows = conn.query(sql::POP_READY, &[&queues, &groups]).await?;
        Ok(rows
            .iter()
            .filter_map(|row| {
                let pair = usize::try_from(row.get::<_, i32>(0)).ok()?;
                Some((pair, usize::try_from(row.get::<_, i64>(1)).ok()?))
            })
            .collect())
    }
}

fn stored_name(text: &str) -> Result<PartitionName, StorageError> {
    PartitionName::new(text).map_err(|_| StorageError::Misaligned("a stored partition name"))
}
