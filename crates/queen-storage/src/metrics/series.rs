//! Reading what brokers counted, by buckets of time.

use queen_pg::{PgTimestamp, Row};
use queen_types::{Namespace, QueueName, Task, TenantId, Timestamp};

use super::sql;
use crate::{Storage, StorageError};

/// A span of time, in buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// From, inclusive.
    pub from: Timestamp,
    /// To, inclusive.
    pub to: Timestamp,
    /// Length of a bucket in seconds, at least 1.
    pub bucket_seconds: i64,
}

/// What all brokers counted in a bucket.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // the names say it; times are milliseconds
pub struct WorkerBucket {
    pub bucket: Timestamp,
    pub avg_loop: i64,
    pub max_loop: i64,
    pub avg_free: i64,
    pub min_free: i64,
    pub connections: i64,
    pub avg_queue: i64,
    pub max_queue: i64,
    pub jobs: i64,
    pub push_requests: i64,
    pub pop_requests: i64,
    pub ack_requests: i64,
    pub push_messages: i64,
    pub pop_messages: i64,
    pub ack_messages: i64,
    pub ack_success: i64,
    pub ack_failed: i64,
    pub lag_count: i64,
    pub avg_lag: i64,
    pub max_lag: i64,
    pub db_errors: i64,
    pub dead_letters: i64,
}

/// One broker over a span.
#[derive(Debug, Clone)]
#[allow(missing_docs)] // the names say it; times are milliseconds
pub struct WorkerSummary {
    pub server: String,
    pub worker: i32,
    pub avg_loop: i64,
    pub max_loop: i64,
    pub free_slots: i64,
    pub connections: i64,
    pub queue_size: i64,
    pub messages: i64,
    pub last_seen: Timestamp,
}

/// What was counted of a queue in a bucket.
#[derive(Debug, Clone)]
#[allow(missing_docs)] // the names say it; lags are milliseconds
pub struct QueueBucket {
    pub bucket: Timestamp,
    pub queue: String,
    pub pop_messages: i64,
    pub lag_count: i64,
    pub avg_lag: i64,
    pub max_lag: i64,
    pub push_requests: i64,
    pub push_messages: i64,
    pub pop_empty: i64,
    pub ack_requests: i64,
    pub ack_success: i64,
    pub ack_failed: i64,
    pub transactions: i64,
    pub created: i64,
    pub deleted: i64,
    pub partitions: i64,
    pub parked: i64,
}

/// Parked pops of a queue at a broker in a bucket.
#[derive(Debug, Clone)]
#[allow(missing_docs)] // the names say it
pub struct ParkedBucket {
    pub bucket: Timestamp,
    pub queue: String,
    pub server: String,
    pub worker: i32,
    pub parked: i64,
}

/// Messages that retention deleted in a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub struct RetentionBucket {
    pub bucket: Timestamp,
    pub age: i64,
    pub completed: i64,
    pub evicted: i64,
    pub events: i64,
}

/// One value of a process in a bucket.
#[derive(Debug, Clone)]
#[allow(missing_docs)] // the names say it
pub struct SystemValue {
    pub server: String,
    pub port: i32,
    pub worker: String,
    pub bucket: Timestamp,
    pub kind: String,
    pub value: String,
    pub samples: i64,
    pub avg: f64,
    pub min: f64,
    pub max: f64,
    pub last: f64,
}

/// Live leases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub struct LeaseSummary {
    pub active: i64,
    pub partitions: i64,
    pub leased: i64,
    pub acked: i64,
}

/// Dead letters, and the most frequent errors of a span.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub struct DeadLetterSummary {
    pub current: i64,
    pub inside: i64,
    pub partitions: i64,
    pub errors: Vec<(String, i64)>,
}

fn at(row: &Row, column: &str) -> Timestamp {
    row.get::<_, PgTimestamp>(column).into()
}

impl Storage {
    /// What all brokers, or one of them, counted.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn worker_series(
        &self,
        span: Span,
        server: Option<&str>,
        worker: Option<i32>,
    ) -> Result<(Vec<WorkerBucket>, Vec<WorkerSummary>), StorageError> {
        let (from, to) = (PgTimestamp(span.from), PgTimestamp(span.to));
        let mut conn = self.inner.pool.get().await?;
        let rows =
            conn.query(sql::WORKER_SERIES, &[&from, &to, &span.bucket_seconds, &server, &worker]).await?;
        let series = rows.iter().map(|row| WorkerBucket {
            bucket: at(row, "bucket"),
            avg_loop: row.get("avg_loop"),
            max_loop: row.get("max_loop"),
            avg_free: row.get("avg_free"),
            min_free: row.get("min_free"),
            connections: row.get("connections"),
            avg_queue: row.get("avg_queue"),
            max_queue: row.get("max_queue"),
            jobs: row.get("jobs"),
            push_requests: row.get("push_requests"),
            pop_requests: row.get("pop_requests"),
            ack_requests: row.get("ack_requests"),
            push_messages: row.get("push_messages"),
            pop_messages: row.get("pop_messages"),
            ack_messages: row.get("ack_messages"),
            ack_success: row.get("ack_success"),
            ack_failed: row.get("ack_failed"),
            lag_count: row.get("lag_count"),
            avg_lag: row.get("avg_lag"),
            max_lag: row.get("max_lag"),
            db_errors: row.get("db_errors"),
            dead_letters: row.get("dead_letters"),
        });
        let series = series.collect();
        let rows = conn.query(sql::WORKERS, &[&from, &to, &server, &worker]).await?;
        let workers = rows.iter().map(|row| WorkerSummary {
            server: row.get("hostname"),
            worker: row.get("worker_id"),
            avg_loop: row.get("avg_loop"),
            max_loop: row.get("max_loop"),
            free_slots: row.get("free_slots"),
            connections: row.get("connections"),
            queue_size: row.get("queue_size"),
            messages: row.get("messages"),
            last_seen: at(row, "last_seen"),
        });
        Ok((series, workers.collect()))
    }

    /// What was counted of the queues of a tenant.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn queue_series(
        &self,
        tenant: TenantId,
        span: Span,
        queue: Option<&QueueName>,
        namespace: Option<&Namespace>,
        task: Option<&Task>,
    ) -> Result<Vec<QueueBucket>, StorageError> {
        let (from, to) = (PgTimestamp(span.from), PgTimestamp(span.to));
        let queue = queue.map(QueueName::as_str);
        let namespace = namespace.map(Namespace::as_str);
        let task = task.map(Task::as_str);
        let mut conn = self.inner.pool.get().await?;
        let rows = conn
            .query(
                sql::QUEUE_SERIES,
                &[&tenant.0, &from, &to, &span.bucket_seconds, &queue, &namespace, &task],
            )
            .await?;
        let buckets = rows.iter().map(|row| QueueBucket {
            bucket: at(row, "bucket"),
            queue: row.get("name"),
            pop_messages: row.get("pop_messages"),
            lag_count: row.get("lag_count"),
            avg_lag: row.get("avg_lag"),
            max_lag: row.get("max_lag"),
            push_requests: row.get("push_requests"),
            push_messages: row.get("push_messages"),
            pop_empty: row.get("pop_empty"),
            ack_requests: row.get("ack_requests"),
            ack_success: row.get("ack_success"),
            ack_failed: row.get("ack_failed"),
            transactions: row.get("transactions"),
            created: row.get("created"),
            deleted: row.get("deleted"),
            partitions: row.get("partitions"),
            parked: row.get("parked"),
        });
        Ok(buckets.collect())
    }

    /// Parked pops of the queues of a tenant.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn parked_series(
        &self,
        tenant: TenantId,
        span: Span,
        queue: Option<&QueueName>,
    ) -> Result<Vec<ParkedBucket>, StorageError> {
        let (from, to) = (PgTimestamp(span.from), PgTimestamp(span.to));
        let queue = queue.map(QueueName::as_str);
        let mut conn = self.inner.pool.get().await?;
        let rows =
            conn.query(sql::PARKED_SERIES, &[&tenant.0, &from, &to, &span.bucket_seconds, &queue]).await?;
        let buckets = rows.iter().map(|row| ParkedBucket {
            bucket: at(row, "bucket"),
            queue: row.get("queue_name"),
            server: row.get("hostname"),
            worker: row.get("worker_id"),
            parked: row.get("parked"),
        });
        Ok(buckets.collect())
    }

    /// What retention deleted of a tenant.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn retention_series(
        &self,
        tenant: TenantId,
        span: Span,
    ) -> Result<Vec<RetentionBucket>, StorageError> {
        let (from, to) = (PgTimestamp(span.from), PgTimestamp(span.to));
        let mut conn = self.inner.pool.get().await?;
        let rows = conn.query(sql::RETENTION_SERIES, &[&tenant.0, &from, &to, &span.bucket_seconds]).await?;
        let buckets = rows.iter().map(|row| RetentionBucket {
            bucket: at(row, "bucket"),
            age: row.get("age"),
            completed: row.get("completed"),
            evicted: row.get("evicted"),
            events: row.get("events"),
        });
        Ok(buckets.collect())
    }

    /// What processes used; values of one process and bucket stand together.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn system_series(
        &self,
        span: Span,
        server: Option<&str>,
    ) -> Result<Vec<SystemValue>, StorageError> {
        let (from, to) = (PgTimestamp(span.from), PgTimestamp(span.to));
        let mut conn = self.inner.pool.get().await?;
        let rows = conn.query(sql::SYSTEM_SERIES, &[&from, &to, &span.bucket_seconds, &server]).await?;
        let values = rows.iter().map(|row| SystemValue {
            server: row.get("hostname"),
            port: row.get("port"),
            worker: row.get("worker_id"),
            bucket: at(row, "bucket"),
            kind: row.get("kind"),
            value: row.get("value"),
            samples: row.get("samples"),
            avg: row.get("avg"),
            min: row.get("min"),
            max: row.get("max"),
            last: row.get("last"),
        });
        Ok(values.collect())
    }

    /// Live leases of the queues of a tenant. Looks at all their cursors.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn lease_summary(
        &self,
        tenant: TenantId,
        queue: Option<&QueueName>,
    ) -> Result<LeaseSummary, StorageError> {
        let queue = queue.map(QueueName::as_str);
        let rows = self.inner.pool.get().await?.query(sql::LEASES, &[&tenant.0, &queue]).await?;
        let row = rows.first().ok_or(StorageError::Misaligned("leases"))?;
        Ok(LeaseSummary {
            active: row.get("active"),
            partitions: row.get("partitions"),
            leased: row.get("leased"),
            acked: row.get("acked"),
        })
    }

    /// Dead letters of the queues of a tenant.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn dead_letter_summary(
        &self,
        tenant: TenantId,
        span: Span,
        queue: Option<&QueueName>,
    ) -> Result<DeadLetterSummary, StorageError> {
        let (from, to) = (PgTimestamp(span.from), PgTimestamp(span.to));
        let queue = queue.map(QueueName::as_str);
        let mut conn = self.inner.pool.get().await?;
        let rows = conn.query(sql::DEAD_LETTERS, &[&tenant.0, &from, &to, &queue]).await?;
        let row = rows.first().ok_or(StorageError::Misaligned("dead letters"))?;
        let errors = rows.iter().filter_map(|row| {
            Some((row.get::<_, Option<String>>("error")?, row.get::<_, Option<i64>>("letters")?))
        });
        Ok(DeadLetterSummary {
            current: row.get("current"),
            inside: row.get("inside"),
            partitions: row.get("partitions"),
            errors: errors.collect(),
        })
    }

    /// What PostgreSQL says of itself and of the tables, as a JSON document.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn postgres_stats(&self) -> Result<String, StorageError> {
        let rows = self.inner.pool.get().await?.query(sql::POSTGRES, &[]).await?;
        Ok(rows.first().ok_or(StorageError::Misaligned("postgres"))?.get("document"))
    }
}
