//! What was counted, by buckets of time, as the database keeps it and the status and analytics routes show it.

use crate::Timestamp;

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
