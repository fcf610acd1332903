//! What the arbiter shows of itself.

use std::fmt::Write;
use std::time::Duration;

use crate::lane::{Lane, PerLane, WaitCounts};
use crate::law::{Mode, Reason};
use crate::trains::TrainStats;

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
    /// The value of the gauge `queen_admission_mode`: 0 normal, 1 nosync.
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
