use super::variable::{Variable, at_least, boolean, clamped, int};

pub(super) const VARIABLES: &[Variable] = &[
    at_least("RETENTION_INTERVAL", "retention.interval_ms", 5_000, 1)
        .live()
        .doc("Period of the maintenance cycle, milliseconds; one broker runs each cycle."),
    at_least("RETENTION_BATCH_SIZE", "retention.batch_size", 1_000, 1).live().doc("Rows per bounded step."),
    clamped("RETENTION_PARALLELISM", "retention.parallelism", 1, 1, 16).live().doc("Workers of those steps."),
    int("QUEEN_RETENTION_DUE_CAP", "retention.due_cap", 0, 0, 1_000_000)
        .like("5000")
        .live()
        .doc("Due partitions per queue, rule and cycle; 0 for batch size × parallelism × 5."),
    int("QUEEN_RETENTION_SAFETY_WALK_MS", "retention.safety_walk_ms", 86_400_000, 0, 31_536_000_000)
        .warn_below(1)
        .live()
        .doc("Period of the walk that repairs watermarks; 0 for the first one only."),
    boolean("QUEEN_PARTITION_CLEANUP_ENABLED", "retention.partition_cleanup.enabled", true)
        .live()
        .doc("Delete partitions that are empty and idle."),
    at_least("PARTITION_CLEANUP_DAYS", "retention.partition_cleanup.days", 30, 1)
        .live()
        .doc("How long they have to be idle."),
    at_least("METRICS_RETENTION_DAYS", "retention.metrics_days", 90, 1)
        .live()
        .doc("Age at which metrics rows are deleted."),
    at_least("STATS_INTERVAL_MS", "stats.interval_ms", 10_000, 1_000)
        .live()
        .doc("Period of the statistics; one broker runs each cycle."),
    at_least("RETAINED_BYTES_INTERVAL_MS", "stats.retained_bytes_interval_ms", 600_000, 1_000)
        .live()
        .doc("Period of the count of stored bytes."),
    at_least("METRICS_FLUSH_MS", "stats.metrics_flush_ms", 60_000, 1_000)
        .live()
        .doc("Period at which each broker writes its metrics rows."),
];
