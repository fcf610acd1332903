//! Values of the status and analytics calls, as they are stored.

pub use queen_storage::admin::Counts as StoredCounts;
pub use queen_storage::maintenance::Job;
pub use queen_storage::metrics::Span;
pub use queen_storage::stats::{Overview, QueueFilter, Refreshed, Spread, StoredQueue};
pub use queen_types::series::{
    DeadLetterSummary, LeaseSummary, ParkedBucket, QueueBucket, RetentionBucket, SystemValue, WorkerBucket,
    WorkerSummary,
};
