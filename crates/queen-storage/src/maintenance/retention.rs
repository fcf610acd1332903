//! Deletion by age: the work list, the look at what stands on it, and one step on one partition.

use std::collections::BTreeMap;
use std::time::Duration;

use queen_pg::{PgTimestamp, Row, step};
use queen_types::{PartitionId, Timestamp, Uuid};

use super::sql;
use crate::{Storage, StorageError, sql::PUSH_LOCK};

/// What is due at a moment of the database's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// The moment that all cutoffs of a cycle are counted from.
    pub now: Timestamp,
    /// Partitions to look at, at most 1000 of each queue.
    pub partitions: Vec<PartitionId>,
    /// Where the list of each queue goes on, this page's and those before it.
    ends: BTreeMap<Uuid, Timestamp>,
}

impl Due {
    pub(super) fn of(rows: &[Row], earlier: Option<&Due>) -> Option<Due> {
        let now: PgTimestamp = rows.first()?.get("now");
        let mut ends = earlier.map(|due| due.ends.clone()).unwrap_or_default();
        let mut partitions = Vec::with_capacity(rows.len());
        for row in rows {
            partitions.push(PartitionId(row.get("partition_id")));
            let from: Timestamp = row.get::<_, PgTimestamp>("retention_from").into();
            let end = ends.entry(row.get("queue_id")).or_insert(from);
            *end = from.max(*end);
        }
        Some(Due { now: now.into(), partitions, ends })
    }
}

/// What a look at partitions of the work list found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    /// Their oldest segment may go.
    pub deletable: Vec<PartitionId>,
    /// Old enough, but a cursor or a lease needs the oldest segment. They were put back on the list.
    pub held: Vec<PartitionId>,
    /// Partitions that were put back on the list, these included; those that somebody had locked are in neither.
    pub deferred: usize,
}

/// What one step deleted of one partition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step {
    /// Segments.
    pub segments: i64,
    /// Messages in them.
    pub messages: i64,
    /// Of these, older than `retentionSeconds`.
    pub age: i64,
    /// Of these, consumed, and older than `completedRetentionSeconds`.
    pub completed: i64,
    /// Of these, older than `maxWaitTimeSeconds`.
    pub evicted: i64,
    /// Of these, not consumed by everybody.
    pub unconsumed: i64,
}

impl Step {
    /// Adds what another step deleted.
    pub fn add(&mut self, other: Step) {
        self.segments += other.segments;
        self.messages += other.messages;
        self.age += other.age;
        self.completed += other.completed;
        self.evicted += other.evicted;
        self.unconsumed += other.unconsumed;
    }
}

fn ids(partitions: &[PartitionId]) -> Vec<Uuid> {
    let mut ids: Vec<Uuid> = partitions.iter().map(|p| p.0).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

impl Storage {
    /// The work list of retention, from its beginning or on from an earlier page; `None` when nothing is due there. A
    /// partition that is still due may come again on the page after its own.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn retention_due(&self, beyond: Option<&Due>) -> Result<Option<Due>, StorageError> {
        let ends = beyond.map(|due| &due.ends);
        let queues: Vec<Uuid> = ends.into_iter().flatten().map(|(queue, _)| *queue).collect();
        let since: Vec<PgTimestamp> = ends.into_iter().flatten().map(|(_, at)| PgTimestamp(*at)).collect();
        let rows = self.inner.pool.get().await?.query(sql::DUE, &[&queues, &since]).await?;
        Ok(Due::of(&rows, beyond))
    }

    /// Looks which of the partitions have something that may go, and puts the others back on the list. `now` is that of
    /// [`Storage::retention_due`], `period` the time until the next cycle.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn retention_look(
        &self,
        partitions: &[PartitionId],
        now: Timestamp,
        period: Duration,
    ) -> Result<Look, StorageError> {
        let period = i64::try_from(period.as_millis()).unwrap_or(i64::MAX);
        let mut conn = self.inner.pool.get().await?;
        let rows = conn.query(sql::HOLD, &[&ids(partitions), &PgTimestamp(now), &period]).await?;
        let mut look = Look::default();
        for row in rows {
            let id = PartitionId(row.get("id"));
            if row.get("deletable") {
                look.deletable.push(id);
            } else {
                look.deferred += 1;
                if row.get("held") {
                    look.held.push(id);
                }
            }
        }
        Ok(look)
    }

    /// Deletes the oldest segments of one partition, at most `segments`, as far as its rules allow at `now`. Zero
    /// when the partition is gone. A crash of the server may forget the step, which is then done again.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn retention_step(
        &self,
        partition: PartitionId,
        now: Timestamp,
        segments: u32,
    ) -> Result<Step, StorageError> {
        let ids = vec![partition.0];
        let (now, segments) = (PgTimestamp(now), i64::from(segments));
        let mut conn = self.inner.pool.get().await?;
        let rows = conn
            .transact(&[step(PUSH_LOCK, &[&ids]), step(sql::STEP, &[&partition.0, &now, &segments, &true])])
            .await?;
        Ok(rows.get(1).and_then(|rows| rows.first()).map_or(Step::default(), |row| Step {
            segments: row.get("segments"),
            messages: row.get("messages"),
            age: row.get("age"),
            completed: row.get("done"),
            evicted: row.get("evicted"),
            unconsumed: row.get("unconsumed"),
        }))
    }

    /// Partitions with hashes that have outlived every window.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn hashes_due(&self) -> Result<Vec<PartitionId>, StorageError> {
        let rows = self.inner.pool.get().await?.query(sql::TXNS_DUE, &[]).await?;
        Ok(rows.iter().map(|row| PartitionId(row.get("partition_id"))).collect())
    }

    /// Deletes the oldest hashes of one partition that have outlived every window, at most `rows`; how many went.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn hashes_step(&self, partition: PartitionId, rows: u32) -> Result<i64, StorageError> {
        let ids = vec![partition.0];
        let limit = i64::from(rows);
        let mut conn = self.inner.pool.get().await?;
        let rows = conn
            .transact(&[step(PUSH_LOCK, &[&ids]), step(sql::TXNS_STEP, &[&partition.0, &limit, &true])])
            .await?;
        Ok(rows.get(1).and_then(|rows| rows.first()).map_or(0, |row| row.get("rows")))
    }
}
