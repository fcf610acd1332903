//! Counters of queues, namespaces, tasks and tenants, stored so that reading them costs nothing.

use std::time::Duration;

use queen_pg::{Conn, PgTimestamp, Row, step};
use queen_types::{Namespace, QueueId, QueueName, Task, TenantId, Timestamp, Uuid};

use crate::admin::Counts;
use crate::{Storage, StorageError};

/// The statements, by name. Each lives in a file of its own under `schema/statements/stats/`.
pub mod sql {
    statements! { "stats/":
        REFRESH = "refresh.sql";
        PRUNE = "prune.sql";
        LOCK = "lock.sql";
        BOUNDS = "bounds.sql";
        QUEUE_IDS = "queue_ids.sql";
        BYTES = "bytes.sql";
        BYTES_TOTAL = "bytes_total.sql";
        OVERVIEW = "overview.sql";
        QUEUES = "queues.sql";
    }
}

/// What a recomputation wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// Queues.
    pub queues: i64,
    /// Their partitions.
    pub partitions: i64,
    /// Namespaces.
    pub namespaces: i64,
    /// Tasks.
    pub tasks: i64,
    /// Tenants, and all together.
    pub systems: i64,
}

/// Smallest, average, median and largest of something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spread {
    /// Average.
    pub avg: i64,
    /// Median.
    pub median: i64,
    /// Smallest.
    pub min: i64,
    /// Largest.
    pub max: i64,
}

/// The stored counters of a tenant.
#[derive(Debug, Clone, PartialEq)]
pub struct Overview {
    /// Queues.
    pub queues: i64,
    /// Partitions.
    pub partitions: i64,
    /// Namespaces that are not empty.
    pub namespaces: i64,
    /// Tasks that are not empty.
    pub tasks: i64,
    /// Messages; what is under a lease is part of the backlog.
    pub counts: Counts,
    /// Bytes of stored segments.
    pub retained_bytes: i64,
    /// Age of the oldest pending message of the partitions that have any, seconds.
    pub time_lag: Spread,
    /// Pending messages of the partitions that have any.
    pub offset_lag: Spread,
    /// Messages appended a second.
    pub ingested_per_second: f64,
    /// Messages consumed a second.
    pub processed_per_second: f64,
    /// The database's clock.
    pub now: Timestamp,
    /// Seconds since the counters were computed; `None`: never.
    pub age_seconds: Option<i64>,
}

/// Which queues.
#[derive(Debug, Clone, Default)]
pub struct QueueFilter {
    /// Only this one.
    pub queue: Option<QueueName>,
    /// Only of this namespace.
    pub namespace: Option<Namespace>,
    /// Only of this task.
    pub task: Option<Task>,
    /// At most so many.
    pub limit: i64,
    /// Leaving out so many.
    pub offset: i64,
}

/// The stored counters of a queue.
#[derive(Debug, Clone)]
pub struct StoredQueue {
    /// Row id.
    pub id: QueueId,
    /// Name.
    pub name: String,
    /// Discovery key.
    pub namespace: String,
    /// Discovery key.
    pub task: String,
    /// Creation time.
    pub created_at: Timestamp,
    /// Partitions.
    pub partitions: i64,
    /// Messages; what is under a lease is part of the backlog.
    pub counts: Counts,
    /// Bytes of stored segments.
    pub retained_bytes: i64,
    /// Stored segments.
    pub segments: i64,
    /// Messages that the slowest consumers are through with, since the partitions were made.
    pub consumed: i64,
}

fn counts(row: &Row) -> Counts {
    Counts {
        total: row.get("total"),
        backlog: row.get("pending"),
        processing: row.get("processing"),
        completed: row.get("completed"),
        dead_letter: row.get("dead_letter"),
    }
}

fn spread(row: &Row, of: &str) -> Spread {
    let get = |which: &str| row.get::<_, Option<i64>>(format!("{which}_{of}").as_str()).unwrap_or(0);
    Spread { avg: get("avg"), median: get("median"), min: get("min"), max: get("max") }
}

/// One transaction under the lock of the task.
async fn refresh(conn: &mut Conn, limit: Duration) -> Result<Option<Vec<Row>>, StorageError> {
    let bound = limit.as_millis().to_string();
    let mut tx = conn.begin();
    let locked = tx.query(sql::LOCK, &[]).await?;
    if !locked.first().is_some_and(|row| row.get("held")) {
        tx.rollback().await?;
        return Ok(None);
    }
    let mut answers = tx
        .commit_with(&[step(sql::BOUNDS, &[&bound]), step(sql::REFRESH, &[]), step(sql::PRUNE, &[])])
        .await?
        .into_iter();
    Ok(Some(answers.nth(1).unwrap_or_default()))
}

impl Storage {
    /// Recomputes all counters in one transaction that may take as long as `limit`. `None`: somebody else does at this
    /// moment.
    ///
    /// # Errors
    /// See [`StorageError`]; nothing changed then.
    ///
    /// # Cancel safety
    /// Dropped, nothing or everything was written.
    pub async fn refresh_stats(&self, limit: Duration) -> Result<Option<Refreshed>, StorageError> {
        let mut conn = self.inner.pool.get().await?;
        let usual = conn.deadline();
        conn.set_deadline(Some(limit + Duration::from_secs(5)));
        let result = refresh(&mut conn, limit).await;
        conn.set_deadline(usual);
        let Some(rows) = result? else { return Ok(None) };
        let mut refreshed = Refreshed::default();
        for row in rows {
            match row.get::<_, &str>("stat_type") {
                "queue" => {
                    refreshed.queues += 1;
                    refreshed.partitions += row.get::<_, i64>("child_count");
                }
                "namespace" => refreshed.namespaces += 1,
                "task" => refreshed.tasks += 1,
                _ => refreshed.systems += 1,
            }
        }
        Ok(Some(refreshed))
    }

    /// Counts the stored bytes of every queue, one statement each, which may take as long as `limit`.
    ///
    /// # Errors
    /// See [`StorageError`]; what was counted before stays.
    pub async fn count_bytes(&self, limit: Duration) -> Result<usize, StorageError> {
        let ids: Vec<Uuid> = self
            .inner
            .pool
            .get()
            .await?
            .query(sql::QUEUE_IDS, &[])
            .await?
            .iter()
            .map(|r| r.get("id"))
            .collect();
        for id in &ids {
            let mut conn = self.inner.pool.get().await?;
            let usual = conn.deadline();
            let bound = limit.as_millis().to_string();
            conn.set_deadline(Some(limit + Duration::from_secs(5)));
            let result = conn.transact(&[step(sql::BOUNDS, &[&bound]), step(sql::BYTES, &[id])]).await;
            conn.set_deadline(usual);
            result?;
        }
        self.inner.pool.get().await?.query(sql::BYTES_TOTAL, &[]).await?;
        Ok(ids.len())
    }

    /// The stored counters of a tenant.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn overview(&self, tenant: TenantId) -> Result<Overview, StorageError> {
        let rows = self.inner.pool.get().await?.query(sql::OVERVIEW, &[&tenant.0]).await?;
        let row = rows.first().ok_or(StorageError::Misaligned("overview"))?;
        Ok(Overview {
            queues: row.get("queues"),
            partitions: row.get("partitions"),
            namespaces: row.get("namespaces"),
            tasks: row.get("tasks"),
            counts: counts(row),
            retained_bytes: row.get("retained_bytes"),
            time_lag: spread(row, "lag"),
            offset_lag: spread(row, "offset"),
            ingested_per_second: row.get::<_, Option<f64>>("ingested").unwrap_or(0.0),
            processed_per_second: row.get::<_, Option<f64>>("processed").unwrap_or(0.0),
            now: row.get::<_, PgTimestamp>("now").into(),
            age_seconds: row.get("age"),
        })
    }

    /// The stored counters of queues, newest queue first.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn stored_queues(
        &self,
        tenant: TenantId,
        filter: &QueueFilter,
    ) -> Result<Vec<StoredQueue>, StorageError> {
        let queue = filter.queue.as_ref().map(QueueName::as_str);
        let namespace = filter.namespace.as_ref().map(Namespace::as_str);
        let task = filter.task.as_ref().map(Task::as_str);
        let mut conn = self.inner.pool.get().await?;
        let rows = conn
            .query(sql::QUEUES, &[&tenant.0, &queue, &namespace, &task, &filter.limit, &filter.offset])
            .await?;
        Ok(rows
            .iter()
            .map(|row| StoredQueue {
                id: QueueId(row.get("id")),
                name: row.get("name"),
                namespace: row.get("namespace"),
                task: row.get("task"),
                created_at: row.get::<_, PgTimestamp>("created_at").into(),
                partitions: row.get("partitions"),
                counts: counts(row),
                retained_bytes: row.get("retained_bytes"),
                segments: row.get("segments"),
                consumed: row.get("consumed"),
            })
            .collect())
    }
}
