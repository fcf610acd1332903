//! Writing what one broker counted.

use queen_pg::{PgTimestamp, Step, step};
use queen_types::{QueueName, TenantId, Timestamp, Uuid};

use super::sql;
use crate::{BEGINNING, Storage, StorageError};

/// Rows of each table that one call deletes, as purge.sql has it.
const PURGE_STEP: i64 = 5_000;

/// How old messages were when they were delivered, milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lag {
    /// Messages.
    pub count: i64,
    /// Sum of their ages.
    pub sum: i64,
    /// Age of the oldest.
    pub max: i64,
}

impl Lag {
    /// One more message.
    pub fn add(&mut self, millis: i64) {
        self.merge(Lag { count: 1, sum: millis, max: millis });
    }

    /// Takes the messages of another.
    pub fn merge(&mut self, other: Lag) {
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }
}

/// What a broker counted in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub struct WorkerCounts {
    pub push_requests: i64,
    pub pop_requests: i64,
    pub ack_requests: i64,
    pub transactions: i64,
    pub push_messages: i64,
    pub pop_messages: i64,
    pub ack_messages: i64,
    pub ack_success: i64,
    pub ack_failed: i64,
    pub lag: Lag,
    pub db_errors: i64,
    pub dead_letters: i64,
}

/// What a broker counted of one queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub struct QueueCounts {
    pub pop_messages: i64,
    pub lag: Lag,
    pub push_requests: i64,
    pub push_messages: i64,
    pub pop_empty: i64,
    pub ack_requests: i64,
    pub ack_success: i64,
    pub ack_failed: i64,
    pub transactions: i64,
    pub partitions_created: i64,
    pub partitions_deleted: i64,
    /// Pops that are parked now.
    pub parked: i64,
}

/// The counts of a queue.
#[derive(Debug, Clone)]
pub struct QueueTally {
    /// Owner.
    pub tenant: TenantId,
    /// The queue.
    pub queue: QueueName,
    /// What was counted.
    pub counts: QueueCounts,
}

/// Pops of a queue that are parked at this broker.
#[derive(Debug, Clone)]
pub struct ParkedCount {
    /// Owner.
    pub tenant: TenantId,
    /// The queue; empty for pops over several.
    pub queue: String,
    /// How many.
    pub parked: i64,
}

/// What a broker process uses.
#[derive(Debug, Clone, Default)]
pub struct Process {
    /// Id of the broker.
    pub server: String,
    /// Port that it serves; 0 when that is not known.
    pub port: i32,
    /// Process id.
    pub pid: i32,
    /// How late the runtime woke a task, milliseconds.
    pub loop_lag_ms: i32,
    /// Write transactions that could be opened at once.
    pub free_slots: i32,
    /// Requests that wait for one.
    pub waiting: i32,
    /// CPU in user code since the last row, percent × 100.
    pub cpu_user: i64,
    /// CPU in the kernel since the last row, percent × 100.
    pub cpu_system: i64,
    /// Resident memory, bytes.
    pub resident: i64,
    /// Address space, bytes.
    pub virtual_memory: i64,
}

impl Storage {
    /// Partitions that this broker made since the last call, by queue.
    pub fn take_created(&self) -> Vec<(TenantId, QueueName, i64)> {
        std::mem::take(&mut *self.inner.created.lock()).into_iter().map(|((t, q), n)| (t, q, n)).collect()
    }

    /// Adds a broker's counts to its rows of the minute, in one transaction.
    ///
    /// # Errors
    /// See [`StorageError`]; nothing was written then, unless the outcome is unknown.
    pub async fn flush_metrics(
        &self,
        process: &Process,
        worker: &WorkerCounts,
        queues: &[QueueTally],
        parked: &[ParkedCount],
    ) -> Result<(), StorageError> {
        let pool = self.inner.pool.status();
        let int = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let active = i32::try_from(pool.active).unwrap_or(i32::MAX);
        let counts = [
            worker.push_requests,
            worker.pop_requests,
            worker.ack_requests,
            worker.transactions,
            worker.push_messages,
            worker.pop_messages,
            worker.ack_messages,
            worker.ack_success,
            worker.ack_failed,
            worker.lag.count,
            worker.lag.sum,
            worker.lag.max,
            worker.db_errors,
            worker.dead_letters,
        ]
        .to_vec();
        let p = process;
        let tenants: Vec<Uuid> = queues.iter().map(|q| q.tenant.0).collect();
        let names: Vec<&str> = queues.iter().map(|q| q.queue.as_str()).collect();
        let column = |of: fn(&QueueCounts) -> i64| queues.iter().map(|q| of(&q.counts)).collect::<Vec<i64>>();
        let columns = [
            column(|c| c.pop_messages),
            column(|c| c.lag.sum),
            column(|c| c.lag.max),
            column(|c| c.push_requests),
            column(|c| c.push_messages),
            column(|c| c.pop_empty),
            column(|c| c.ack_requests),
            column(|c| c.ack_success),
            column(|c| c.ack_failed),
            column(|c| c.transactions),
            column(|c| c.partitions_created),
            column(|c| c.partitions_deleted),
            column(|c| c.parked),
        ];
        let mut queue_values: Vec<&(dyn queen_pg::ToSql + Sync)> = vec![&tenants, &names];
        queue_values.extend(columns.iter().map(|c| c as &(dyn queen_pg::ToSql + Sync)));
        let parked_tenants: Vec<Uuid> = parked.iter().map(|q| q.tenant.0).collect();
        let parked_names: Vec<&str> = parked.iter().map(|q| q.queue.as_str()).collect();
        let parked_counts: Vec<i64> = parked.iter().map(|q| q.parked).collect();
        let (size, idle, busy, waiting) =
            (int(pool.max), int(pool.idle), int(pool.active), int(pool.waiting));
        let worker_values: [&(dyn queen_pg::ToSql + Sync); 7] =
            [&p.server, &p.pid, &p.loop_lag_ms, &p.free_slots, &active, &p.waiting, &counts];
        let system_values: [&(dyn queen_pg::ToSql + Sync); 10] = [
            &p.server,
            &p.port,
            &p.cpu_user,
            &p.cpu_system,
            &p.resident,
            &p.virtual_memory,
            &size,
            &idle,
            &busy,
            &waiting,
        ];
        let parked_values: [&(dyn queen_pg::ToSql + Sync); 4] =
            [&p.server, &parked_tenants, &parked_names, &parked_counts];
        let mut steps: Vec<Step<'_>> =
            vec![step(sql::WORKER, &worker_values), step(sql::SYSTEM, &system_values)];
        if !queues.is_empty() {
            steps.push(step(sql::QUEUES, &queue_values));
        }
        if !parked.is_empty() {
            steps.push(step(sql::PARKED, &parked_values));
        }
        self.inner.pool.get().await?.transact(&steps).await?;
        Ok(())
    }

    /// Deletes metrics and history older than `days`, at most 5000 rows of each table; how many went. Each table goes on
    /// where the last call stopped, and begins anew once a call came to its end.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn purge_metrics(&self, days: u32) -> Result<i64, StorageError> {
        let days = i32::try_from(days).unwrap_or(i32::MAX);
        let from = self.inner.purged.lock().map(PgTimestamp).to_vec();
        let answer = self.inner.pool.get().await?.query(sql::PURGE, &[&days, &from]).await?;
        let Some(row) = answer.first() else { return Ok(0) };
        let (rows, upto): (Vec<i64>, Vec<Option<PgTimestamp>>) = (row.get("rows"), row.get("upto"));
        let mut purged = self.inner.purged.lock();
        for (from, (rows, upto)) in purged.iter_mut().zip(rows.iter().zip(upto)) {
            let upto = upto.filter(|_| *rows >= PURGE_STEP);
            *from = upto.map_or(BEGINNING, Timestamp::from);
        }
        Ok(rows.iter().sum())
    }
}
