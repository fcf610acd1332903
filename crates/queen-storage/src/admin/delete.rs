//! Deleting a queue with everything in it.

use queen_pg::{Conn, Pool, Row, step};
use queen_types::{PartitionId, QueueId, QueueName, TenantId, Uuid};

use super::row::column;
use super::sql;
use crate::StorageError;

/// Partitions of a queue that goes in one transaction.
const PARTITIONS_MAX: i64 = 1_000;
/// Its segments; also how many one step deletes, as delete_some.sql has it.
const SEGMENTS_MAX: i64 = 10_000;

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
/// A large queue is emptied in bounded steps first, each a transaction of its own, so that no statement runs into its
/// deadline; the queue can be used meanwhile and shows that it shrinks. The rest, and a small queue as a whole, goes in
/// one transaction, locks in the order that all actors share: its dead letters, the queue, its partitions, its
/// subscriptions, its cursors, each ascending. So it waits for pushes, acks and replays that are under way and never
/// deadlocks with them;
/// they find the rows gone when it is through.
///
/// # Errors
/// [`StorageError::Pg`] when the database refused or was not reached. Of a small queue nothing was deleted then, except
/// when the outcome of the commit is unknown (a deadline); a large one may have lost a part, and can be deleted again.
pub async fn delete_queue(
    pool: &Pool,
    tenant: TenantId,
    queue: &QueueName,
) -> Result<Option<DeletedQueue>, StorageError> {
    let mut conn = pool.get().await?;
    let name = queue.as_str();
    let mut emptied = empty(&mut conn, tenant, name).await?;
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
    emptied.extend(partitions);
    emptied.sort_unstable();
    Ok(Some(DeletedQueue { id: QueueId(id), partitions: emptied.into_iter().map(PartitionId).collect() }))
}

/// Deletes the partitions of a queue that is too large for one transaction, page by page; which they were. A small
/// queue is left as it is.
async fn empty(conn: &mut Conn, tenant: TenantId, name: &str) -> Result<Vec<Uuid>, StorageError> {
    let mut emptied = Vec::new();
    let size = conn.query(sql::DELETE_SIZE, &[&tenant.0, &name]).await?;
    let Some(size) = size.first() else { return Ok(emptied) };
    if column::<i64>(size, "partitions")? <= PARTITIONS_MAX
        && column::<i64>(size, "segments")? <= SEGMENTS_MAX
    {
        return Ok(emptied);
    }
    let mut beyond = String::new();
    loop {
        let rows = conn.query(sql::DELETE_PAGE, &[&tenant.0, &name, &beyond]).await?;
        let Some(last) = rows.last() else { return Ok(emptied) };
        beyond = column(last, "name")?;
        let mut page = ids(&rows)?;
        page.sort_unstable();
        // Where each log begins for the next step; at first it is whatever lies there, also below its noted start.
        let mut starts = vec![i64::MIN; page.len()];
        while !delete_page(conn, &page, &mut starts).await? {}
        emptied.extend(page);
    }
}

/// Deletes partitions with what hangs on them, in one transaction: whether that was all. When they have too many segments,
/// only the oldest of these go, and the `starts` move on behind them.
async fn delete_page(conn: &mut Conn, page: &[Uuid], starts: &mut [i64]) -> Result<bool, StorageError> {
    let mut tx = conn.begin();
    let answers = tx
        .run(&[
            step(sql::DELETE_LOCK_DLQ, &[&page]),
            step(sql::DELETE_LOCK_SOME, &[&page]),
            step(sql::DELETE_LOCK_CONSUMERS, &[&page]),
            step(sql::DELETE_SOME, &[&page, &&*starts]),
        ])
        .await?;
    let (mut deleted, mut shorter, mut begins) = (0, Vec::new(), Vec::new());
    for row in answers.get(3).into_iter().flatten() {
        let at =
            usize::try_from(column::<i64>(row, "ord")? - 1).map_err(|_| StorageError::Misaligned("ord"))?;
        let (Some(id), Some(start)) = (page.get(at), starts.get_mut(at)) else {
            return Err(StorageError::Misaligned("ord"));
        };
        *start = column(row, "start")?;
        shorter.push(*id);
        begins.push(*start);
        deleted += column::<i64>(row, "rows")?;
    }
    if deleted >= SEGMENTS_MAX {
        tx.commit_with(&[step(sql::DELETE_NOTE, &[&shorter, &begins])]).await?;
        return Ok(false);
    }
    tx.commit_with(&[
        step(sql::DELETE_DLQ, &[&page]),
        step(sql::DELETE_TXNS, &[&page]),
        step(sql::DELETE_CONSUMERS, &[&page]),
        step(sql::DELETE_PARTITIONS, &[&page]),
    ])
    .await?;
    Ok(true)
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
