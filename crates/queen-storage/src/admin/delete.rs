//! Deleting a queue with everything in it.

use queen_pg::{Pool, Row, step};
use queen_types::{PartitionId, QueueId, QueueName, TenantId, Uuid};

use super::row::column;
use super::sql;
use crate::StorageError;

/// What a deletion took away; caches drop these ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedQueue {
    /// The queue's row id.
    pub id: QueueId,
    /// Row ids of its partitions.
    pub partitions: Vec<PartitionId>,
}

/// Deletes a queue: configuration, partitions, messages, cursors, subscriptions and dead letters. `None` when there
/// was none; nothing was written then.
///
/// One transaction, locks in the order that all actors share: its dead letters, the queue, its partitions, its
/// subscriptions, its cursors, each ascending. So it waits for pushes, acks and replays that are under way and never deadlocks with them;
/// they find the rows gone when it is through.
///
/// # Errors
/// [`StorageError::Pg`] when the database refused or was not reached; nothing was deleted then, except when the outcome of
/// the commit is unknown (a deadline).
pub async fn delete_queue(
    pool: &Pool,
    tenant: TenantId,
    queue: &QueueName,
) -> Result<Option<DeletedQueue>, StorageError> {
    let mut conn = pool.get().await?;
    let name = queue.as_str();
    let mut tx = conn.begin();
    let seen = ids(&tx.query(sql::PARTITION_IDS, &[&tenant.0, &name]).await?)?;
    let locked = tx
        .run(&[step(sql::DELETE_LOCK_DLQ, &[&seen]), step(sql::DELETE_LOCK_QUEUE, &[&tenant.0, &name])])
        .await?;
    let Some(row) = locked.get(1).and_then(|rows| rows.first()) else {
        tx.rollback().await?;
        return Ok(None);
    };
    let id: Uuid = column(row, "id")?;

    // Final from here on: a new partition needs a key-share lock of the queue's row.
    let partitions = ids(&tx.query(sql::DELETE_LOCK_PARTITIONS, &[&id]).await?)?;
    tx.commit_with(&[
        step(sql::DELETE_SUBSCRIPTIONS, &[&id]),
        step(sql::DELETE_LOCK_CONSUMERS, &[&partitions]),
        step(sql::DELETE_DLQ, &[&partitions]),
        step(sql::DELETE_TXNS, &[&partitions]),
        step(sql::DELETE_SEGMENTS, &[&partitions]),
        step(sql::DELETE_CONSUMERS, &[&partitions]),
        step(sql::DELETE_QUEUE, &[&id]),
    ])
    .await?;
    Ok(Some(DeletedQueue { id: QueueId(id), partitions: partitions.into_iter().map(PartitionId).collect() }))
}

/// Row ids of the partitions of one queue, ascending; empty when there is none.
///
/// # Errors
/// [`StorageError::Pg`] when the database was not reached.
pub async fn partition_ids_of_queue(
    pool: &Pool,
    tenant: TenantId,
    queue: &QueueName,
) -> Result<Vec<PartitionId>, StorageError> {
    let mut conn = pool.get().await?;
    let rows = conn.query(sql::PARTITION_IDS, &[&tenant.0, &queue.as_str()]).await?;
    Ok(ids(&rows)?.into_iter().map(PartitionId).collect())
}

fn ids(rows: &[Row]) -> Result<Vec<Uuid>, StorageError> {
    rows.iter().map(|row| column(row, "id")).collect()
}
