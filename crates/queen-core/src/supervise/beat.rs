//! The heartbeat of a background task: by when it means to come around again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A task is stalled when it comes around so many times later than it meant to.
const LATE_FACTOR: u32 = 10;
/// Nothing is called late before this much time; a busy machine is no stall.
const LATE_MIN: Duration = Duration::from_secs(10);
/// No time is set by which the task comes around.
const NEVER: u64 = u64::MAX;

/// A task's own side of its heartbeat. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Beat {
    pub(super) pulse: Arc<Pulse>,
}

impl Beat {
    /// The task is here, and will be again in about this time. Ten times as late, and 10 s at least, it is reported as
    /// stalled.
    pub fn within(&self, cadence: Duration) {
        self.pulse.expect(self.pulse.now(), cadence);
    }

    /// The task is here, and waits for something that may never come.
    pub fn idle(&self) {
        self.pulse.due_ms.store(NEVER, Ordering::Relaxed);
    }
}

/// What is known of one task, shared by the task, its supervisor and whoever asks.
#[derive(Debug)]
pub(super) struct Pulse {
    began: Instant,
    /// Milliseconds since `began` after which the task counts as stalled.
    due_ms: AtomicU64,
    up: AtomicBool,
    restarts: AtomicU64,
    /// The last look found it stalled, so that a stall is reported once.
    reported: AtomicBool,
}

impl Pulse {
    pub(super) fn new(began: Instant) -> Pulse {
        Pulse {
            began,
            due_ms: AtomicU64::new(NEVER),
            up: AtomicBool::new(false),
            restarts: AtomicU64::new(0),
            reported: AtomicBool::new(false),
        }
    }

    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn expect(&self, now: Duration, cadence: Duration) {
        let late = now + cadence.saturating_mul(LATE_FACTOR).max(LATE_MIN);
        self.due_ms.store(u64::try_from(late.as_millis()).unwrap_or(NEVER), Ordering::Relaxed);
    }

    pub(super) fn set_up(&self, up: bool) {
        self.due_ms.store(NEVER, Ordering::Relaxed);
        self.up.store(up, Ordering::Relaxed);
    }

    pub(super) fn restarted(&self) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::Relaxed)
    }

    /// It runs, and comes around.
    pub(super) fn is_up(&self, now: Duration) -> bool {
        self.up.load(Ordering::Relaxed) && !self.is_stalled(now)
    }

    pub(super) fn is_stalled(&self, now: Duration) -> bool {
        now.as_millis() > u128::from(self.due_ms.load(Ordering::Relaxed))
    }

    /// Whether it is found stalled for the first time since it last was not.
    pub(super) fn newly_stalled(&self, now: Duration) -> bool {
        let stalled = self.is_stalled(now);
        !self.reported.swap(stalled, Ordering::Relaxed) && stalled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    #[test]
    fn a_task_is_stalled_ten_cadences_after_its_last_beat() {
        let pulse = Pulse::new(Instant::now());
        pulse.set_up(true);
        assert!(pulse.is_up(s(1_000_000)), "nothing is expected");
        pulse.expect(s(100), s(2));
        assert!(pulse.is_up(s(120)));
        assert!(!pulse.is_up(s(121)) && pulse.is_stalled(s(121)));
        pulse.expect(s(121), Duration::from_millis(20));
        assert!(pulse.is_up(s(131)), "never before ten seconds");
        assert!(pulse.is_stalled(s(132)));
    }

    #[test]
    fn a_stall_is_news_once() {
        let pulse = Pulse::new(Instant::now());
        pulse.set_up(true);
        pulse.expect(s(0), s(1));
        assert!(!pulse.newly_stalled(s(5)));
        assert!(pulse.newly_stalled(s(11)));
        assert!(!pulse.newly_stalled(s(12)));
        pulse.expect(s(13), s(1));
        assert!(!pulse.newly_stalled(s(14)));
        assert!(pulse.newly_stalled(s(30)));
    }

    #[test]
    fn what_does_not_run_is_not_up_and_not_stalled() {
        let pulse = Pulse::new(Instant::now());
        assert!(!pulse.is_up(s(0)));
        pulse.expect(s(0), s(1));
        pulse.set_up(false);
        assert!(!pulse.is_stalled(s(100)));
    }
}
