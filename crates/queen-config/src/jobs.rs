//! Background jobs: sections `retention` and `stats`.

use std::time::Duration;

use queen_core::UpkeepOptions;
use serde::Deserialize;

use crate::merge::Merged;

#[derive(Deserialize)]
struct Retention {
    interval_ms: u64,
    batch_size: u64,
    parallelism: usize,
    due_cap: usize,
    safety_walk_ms: u64,
    partition_cleanup: PartitionCleanup,
    metrics_days: u64,
}

#[derive(Deserialize)]
struct PartitionCleanup {
    enabled: bool,
    days: u64,
}

#[derive(Deserialize)]
struct Stats {
    interval_ms: u64,
    retained_bytes_interval_ms: u64,
    metrics_flush_ms: u64,
}

fn days(days: u64) -> u32 {
    // What PostgreSQL's calendar can still subtract.
    u32::try_from(days).unwrap_or(u32::MAX).min(365_000)
}

/// The options that the two sections make.
pub(crate) fn options(merged: &Merged) -> Result<UpkeepOptions, Box<figment::Error>> {
    let retention: Retention = merged.section("retention")?;
    let stats: Stats = merged.section("stats")?;
    let cleanup = retention.partition_cleanup;
    Ok(UpkeepOptions {
        retention: true,
        retention_interval: Duration::from_millis(retention.interval_ms),
        retention_batch: u32::try_from(retention.batch_size).unwrap_or(u32::MAX),
        retention_parallelism: retention.parallelism,
        retention_due_cap: retention.due_cap,
        safety_walk: Duration::from_millis(retention.safety_walk_ms),
        partition_cleanup_days: cleanup.enabled.then_some(days(cleanup.days)),
        metrics_days: days(retention.metrics_days),
        stats: true,
        stats_interval: Duration::from_millis(stats.interval_ms),
        bytes_interval: Duration::from_millis(stats.retained_bytes_interval_ms),
        metrics_flush: Some(Duration::from_millis(stats.metrics_flush_ms)),
    })
}
