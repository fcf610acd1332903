//! Reading what brokers counted, by buckets of time.

use queen_pg::{PgTimestamp, Row};
use queen_types::series::{
    DeadLetterSummary, LeaseSummary, ParkedBucket, QueueBucket, RetentionBucket, SystemValue, WorkerBucket,
    WorkerSummary,
};
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
