use std::time::Duration;

/// How background work is done.
#[derive(Debug, Clone)]
pub struct UpkeepOptions {
    /// Take part in retention.
    pub retention: bool,
    /// Time between two cycles of retention, at least a millisecond.
    pub retention_interval: Duration,
    /// Segments of one step, at least 1.
    pub retention_batch: u32,
    /// Steps at the same time, 1..16; each takes a connection.
    pub retention_parallelism: usize,
    /// Partitions that one cycle works on at most; 0: five times batch and parallelism.
    pub retention_due_cap: usize,
    /// Time between two walks that mend the notes of retention; zero: only the one after a start.
    pub safety_walk: Duration,
    /// Days after which an unused partition is deleted; `None`: never.
    pub partition_cleanup_days: Option<u32>,
    /// Days after which rows of metrics are deleted, at least 1.
    pub metrics_days: u32,
    /// Take part in the statistics.
    pub stats: bool,
    /// Time between two recomputations of the statistics.
    pub stats_interval: Duration,
    /// Time between two counts of the stored bytes.
    pub bytes_interval: Duration,
    /// Time between two rows of metrics of this broker; `None`: none are written.
    pub metrics_flush: Option<Duration>,
}

impl Default for UpkeepOptions {
    fn default() -> Self {
        UpkeepOptions {
            retention: true,
            retention_interval: Duration::from_secs(5),
            retention_batch: 1_000,
            retention_parallelism: 1,
            retention_due_cap: 0,
            safety_walk: Duration::from_secs(86_400),
            partition_cleanup_days: Some(30),
            metrics_days: 90,
            stats: true,
            stats_interval: Duration::from_secs(10),
            bytes_interval: Duration::from_secs(600),
            metrics_flush: Some(Duration::from_secs(60)),
        }
    }
}

impl UpkeepOptions {
    /// No background work at all: nothing is deleted by age and statistics stand still.
    pub fn off() -> UpkeepOptions {
        UpkeepOptions { retention: false, stats: false, metrics_flush: None, ..Default::default() }
    }

    pub(crate) fn due_cap(&self) -> usize {
        match self.retention_due_cap {
            0 => usize::try_from(self.retention_batch)
                .unwrap_or(usize::MAX)
                .saturating_mul(self.retention_parallelism)
                .saturating_mul(5),
            cap => cap,
        }
    }
}
