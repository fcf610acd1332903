//! What the arbiter shows of itself.

use std::fmt::Write;
use std::time::Duration;

use crate::lane::{Lane, PerLane, WaitCounts};
use crate::law::{Mode, Reason};
use crate::trains::TrainStats;

/// Names of the metric families; those "by lane" have the label [`LANE`](names::LANE).
pub mod names {
    /// Label whose values are those of [`Lane::as_str`](crate::Lane::as_str).
    pub const LANE: &str = "lane";
    /// Gauge: [`Snapshot::budget`](super::Snapshot::budget).
    pub const BUDGET: &str = "queen_admission_budget";
    /// Gauge by lane: slots in flight.
    pub const INFLIGHT: &str = "queen_admission_inflight";
    /// Gauge by lane: requests that wait.
    pub const WAITING: &str = "queen_admission_waiting";
    /// Gauge by lane: the cap.
    pub const CAP: &str = "queen_admission_cap";
    /// Gauge: commit trains a second.
    pub const TRAINS_PER_S: &str = "queen_admission_trains_per_s";
    /// Gauge: transactions in a train.
    pub const TXN_PER_TRAIN: &str = "queen_admission_txn_per_train";
    /// Gauge: the flush cycle in milliseconds.
    pub const CYCLE_MS: &str = "queen_admission_cycle_ms";
    /// Gauge: age of the oldest slot outside maintenance, in seconds.
    pub const OLDEST_SECONDS: &str = "queen_admission_oldest_seconds";
    /// Gauge: [`Snapshot::mode_value`](super::Snapshot::mode_value).
    pub const MODE: &str = "queen_admission_mode";
    /// Histogram by lane: time from a request to its slot, in seconds.
    pub const WAIT_SECONDS: &str = "queen_admission_wait_seconds";
}

/// The arbiter at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The budget in transactions, with its fraction; its whole part is what is admitted.
    pub budget: f64,
    /// Whether commits wait for a disk.
    pub mode: Mode,
    /// Why the budget last moved.
    pub last: Reason,
    /// Age of the oldest slot that is not in the maintenance lane; 0 without one.
    pub oldest: Duration,
    /// Commit trains of the last ten seconds.
    pub trains: TrainStats,
    /// Each lane.
    pub lanes: PerLane<LaneSnapshot>,
}

/// A lane at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaneSnapshot {
    /// Slots in flight.
    pub in_flight: usize,
    /// Requests that wait.
    pub waiting: usize,
    /// Slots that may be in flight.
    pub cap: usize,
    /// How long the oldest request waits; 0 without one.
    pub oldest_wait: Duration,
    /// How long requests waited since the start; those that gave up or were refused are not in it.
    pub waits: WaitCounts,
}

impl Snapshot {
    /// The value of the gauge [`names::MODE`]: 0 normal, 1 nosync.
    pub fn mode_value(&self) -> f64 {
        match self.mode {
            Mode::Normal => 0.0,
            Mode::Nosync => 1.0,
        }
    }

    /// How long the oldest request of any lane waits; 0 without one.
    pub fn oldest_wait(&self) -> Duration {
        self.lanes.iter().map(|(_, lane)| lane.oldest_wait).max().unwrap_or_default()
    }

    /// The field `adm_lanes` of the log, for example `push:1/2w0 pop:0/4w0 ack:0/2w0 maint:0/2w0`.
    pub fn lanes_text(&self) -> String {
        let mut text = String::with_capacity(64);
        for lane in Lane::ALL {
            let LaneSnapshot { in_flight, cap, waiting, .. } = self.lanes[lane];
            let gap = if text.is_empty() { "" } else { " " };
            // Writing to a string cannot fail.
            let _ = write!(text, "{gap}{lane}:{in_flight}/{cap}w{waiting}");
        }
        text
    }
}
