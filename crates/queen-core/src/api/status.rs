//! Values of the status and analytics calls, as they are stored.

pub use queen_storage::admin::{Counts as StoredCounts, Pin};
pub use queen_storage::maintenance::Job;
pub use queen_storage::metrics::{
    DeadLetterSummary, LeaseSummary, ParkedBucket, QueueBucket, RetentionBucket, Span, SystemValue,
    WorkerBucket, WorkerSummary,
};
pub use queen_storage::stats::{Overview, QueueFilter, Refreshed, Spread, StoredQueue};

/// What a dashboard shows at first.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Whether the database answered within two seconds when it was asked last, at most two seconds ago.
    pub connected: bool,
    /// The stored counters of the tenant; `None`: they were never read.
    pub overview: Option<Overview>,
    /// What all brokers counted in the last hour, oldest bucket first.
    pub series: Vec<WorkerBucket>,
    /// Length of a bucket, seconds.
    pub series_seconds: i64,
    /// Pops of the tenant that are parked at this broker.
    pub parked: usize,
}
