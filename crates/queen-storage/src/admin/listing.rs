//! Listings: queues, one queue in detail, namespaces and tasks.

use std::collections::BTreeMap;

use queen_pg::{PgTimestamp, Pool, Row, step};
use queen_types::{PartitionId, PartitionName, QueueId, QueueName, TenantId, Timestamp, Uuid};

use super::options_row::QueueRow;
use super::row::{column, named};
use super::sql;
use crate::StorageError;

/// Message counts of a partition, or their sum over a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Retained messages, consumed or not.
    pub total: i64,
    /// Not yet committed by the furthest-behind view (the slowest named group, else queue mode, else nobody); what is
    /// under a lease is part of it.
    pub backlog: i64,
    /// How much of the backlog is under a live lease.
    pub processing: i64,
    /// total - backlog - dead letters, at least 0.
    pub completed: i64,
    /// Dead letters.
    pub dead_letter: i64,
}

impl Counts {
    /// The backlog that nobody is working on: backlog - processing.
    pub fn ready(&self) -> i64 {
        self.backlog - self.processing
    }

    /// Adds the counts of another partition.
    pub fn add(&mut self, other: &Counts) {
        self.total += other.total;
        self.backlog += other.backlog;
        self.processing += other.processing;
        self.completed += other.completed;
        self.dead_letter += other.dead_letter;
    }

    fn decode(row: &Row) -> Result<Counts, StorageError> {
        Ok(Counts {
            total: column(row, "total")?,
            backlog: column(row, "backlog")?,
            processing: column(row, "processing")?,
            completed: column(row, "completed")?,
            dead_letter: column(row, "dead_letter")?,
        })
    }
}

/// One queue of the listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueListing {
    /// Row id.
    pub id: QueueId,
    /// Name.
    pub name: QueueName,
    /// First discovery key, `""` for none.
    pub namespace: String,
    /// Second discovery key, `""` for none.
    pub task: String,
    /// Creation time.
    pub created_at: Timestamp,
    /// Number of partitions.
    pub partitions: i64,
    /// Number of stored segments; 0 when they were not asked for.
    pub segments: i64,
    /// Counts over all partitions.
    pub counts: Counts,
}

/// What the segments of one queue take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stored {
    /// Number of segments.
    pub segments: i64,
    /// Bytes of their blobs.
    pub bytes: i64,
}

/// One partition of a queue's detail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionRow {
    /// Row id.
    pub id: PartitionId,
    /// Name.
    pub name: PartitionName,
    /// Creation time.
    pub created_at: Timestamp,
    /// Counts.
    pub counts: Counts,
    /// Append time of the oldest retained segment.
    pub oldest_at: Option<Timestamp>,
    /// Append time of the newest segment.
    pub newest_at: Option<Timestamp>,
}

/// One queue in detail.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueDetail {
    /// Identity and options.
    pub queue: QueueRow,
    /// Its partitions, by name.
    pub partitions: Vec<PartitionRow>,
    /// Sum over the partitions.
    pub totals: Counts,
    /// Its segments.
    pub stored: Stored,
}

/// One namespace or task with its totals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyTotals {
    /// The namespace or task.
    pub key: String,
    /// Queues under it.
    pub queues: i64,
    /// Their partitions.
    pub partitions: i64,
    /// Their counts.
    pub counts: Counts,
}

/// Every queue of the tenant, newest first. `with_segments` also counts the stored segments, which costs a walk over
/// an index of all of them; bytes are left to [`queue_detail`], because they need the rows.
///
/// # Errors
/// [`StorageError::Pg`] when the database was not reached; [`StorageError::Misaligned`] on a row that this product does not write.
pub async fn queue_list(
    pool: &Pool,
    tenant: TenantId,
    with_segments: bool,
) -> Result<Vec<QueueListing>, StorageError> {
    let mut conn = pool.get().await?;
    let rows = conn.query(sql::QUEUE_LIST, &[&tenant.0]).await?;
    let mut queues = rows.iter().map(decode_listing).collect::<Result<Vec<_>, _>>()?;
    if with_segments {
        let mut segments = BTreeMap::new();
        for row in conn.query(sql::QUEUE_LIST_SEGMENTS, &[&tenant.0]).await? {
            segments.insert(QueueId(column::<Uuid>(&row, "queue_id")?), column::<i64>(&row, "segments")?);
        }
        for queue in &mut queues {
            queue.segments = segments.get(&queue.id).copied().unwrap_or(0);
        }
    }
    Ok(queues)
}

fn decode_listing(row: &Row) -> Result<QueueListing, StorageError> {
    let created_at: PgTimestamp = column(row, "created_at")?;
    Ok(QueueListing {
        id: QueueId(column(row, "id")?),
        name: named(row, "name", QueueName::new)?,
        namespace: column(row, "namespace")?,
        task: column(row, "task")?,
        created_at: created_at.0,
        partitions: column(row, "partitions")?,
        segments: 0,
        counts: Counts::decode(row)?,
    })
}

/// One queue with its options, partitions and counts; `None` when there is none.
///
/// # Errors
/// As [`queue_list`].
pub async fn queue_detail(
    pool: &Pool,
    tenant: TenantId,
    queue: &QueueName,
) -> Result<Option<QueueDetail>, StorageError> {
    let mut conn = pool.get().await?;
    let name = queue.as_str();
    let by_name: [&(dyn queen_pg::ToSql + Sync); 2] = [&tenant.0, &name];
    let answers = conn
        .transact(&[
            step(sql::QUEUE_LOAD, &by_name),
            step(sql::QUEUE_PARTITIONS, &by_name),
            step(sql::QUEUE_SEGMENTS, &by_name),
        ])
        .await?;
    let mut answers = answers.into_iter();
    let Some(queue) = answers.next().unwrap_or_default().first().map(QueueRow::decode).transpose()? else {
        return Ok(None);
    };
    let partitions =
        answers.next().unwrap_or_default().iter().map(decode_partition).collect::<Result<Vec<_>, _>>()?;
    let stored = match answers.next().unwrap_or_default().first() {
        Some(row) => Stored { segments: column(row, "segments")?, bytes: column(row, "bytes")? },
        None => Stored::default(),
    };
    let mut totals = Counts::default();
    for partition in &partitions {
        totals.add(&partition.counts);
    }
    Ok(Some(QueueDetail { queue, partitions, totals, stored }))
}

fn decode_partition(row: &Row) -> Result<PartitionRow, StorageError> {
    let created_at: PgTimestamp = column(row, "created_at")?;
    let oldest: Option<PgTimestamp> = column(row, "oldest_at")?;
    let newest: Option<PgTimestamp> = column(row, "newest_at")?;
    Ok(PartitionRow {
        id: PartitionId(column(row, "id")?),
        name: named(row, "name", PartitionName::new)?,
        created_at: created_at.0,
        counts: Counts::decode(row)?,
        oldest_at: oldest.map(|t| t.0),
        newest_at: newest.map(|t| t.0),
    })
}

/// Every namespace of the tenant's queues with its totals, by name; queues without one are under `""`.
///
/// # Errors
/// As [`queue_list`].
pub async fn namespaces(pool: &Pool, tenant: TenantId) -> Result<Vec<KeyTotals>, StorageError> {
    Ok(totals_by(queue_list(pool, tenant, false).await?, |queue| &queue.namespace))
}

/// Every task of the tenant's queues with its totals, by name; queues without one are under `""`.
///
/// # Errors
/// As [`queue_list`].
pub async fn tasks(pool: &Pool, tenant: TenantId) -> Result<Vec<KeyTotals>, StorageError> {
    Ok(totals_by(queue_list(pool, tenant, false).await?, |queue| &queue.task))
}

fn totals_by(queues: Vec<QueueListing>, key: impl Fn(&QueueListing) -> &String) -> Vec<KeyTotals> {
    let mut totals: BTreeMap<String, KeyTotals> = BTreeMap::new();
    for queue in &queues {
        let name = key(queue);
        let entry = totals.entry(name.clone()).or_insert_with(|| KeyTotals {
            key: name.clone(),
            queues: 0,
            partitions: 0,
            counts: Counts::default(),
        });
        entry.queues += 1;
        entry.partitions += queue.partitions;
        entry.counts.add(&queue.counts);
    }
    totals.into_values().collect()
}
