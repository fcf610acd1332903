//! The cap of one lane, which finds its own place by probes.
//!
//! A lane that is held back by its cap and makes full use of it raises the cap for one tick and looks whether that
//! paid. If not, the cap goes back and stays for six ticks. Now and then the probe goes down instead: the fewest
//! commits that carry the same work are the best ones, and a load whose best has moved down is found in no other way.

use crate::lane::{Activity, Lane};
use crate::verdict::{Direction, Reading, is_kept};

/// Ticks without a probe after one that did not pay.
const STILL_TICKS: u32 = 6;
/// A lane that completes less than this in a tick is not measured.
const COMPLETIONS_MIN: u64 = 8;
/// At most so many probes go up between two that go down.
const UPS_MAX: u32 = 4;
/// How much the newest tick counts in the level.
const LEVEL_NEWEST: f64 = 0.3;
/// A rate below this part of the level means that something else is the best: the next probe goes down.
const SHIFT: f64 = 0.8;

#[derive(Debug)]
pub(crate) struct Cap {
    slots: usize,
    floor: usize,
    ceiling: usize,
    /// Ticks to come without a probe.
    still: u32,
    probe: Option<Probe>,
    /// What ticks without a probe show at this cap, smoothed. None while the cap is not what holds the lane back.
    level: Option<Reading>,
    /// The best rates since the load last changed; its rings mean nothing.
    peak: Reading,
    /// Probes that go up before the next that goes down.
    ups_left: u32,
    /// How many those were when the last one that went down had failed.
    ups: u32,
}

#[derive(Debug)]
struct Probe {
    direction: Direction,
    from: usize,
}

/// What a tick did to a cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapStep {
    /// Nothing.
    Held,
    /// A probe that went up.
    Raised,
    /// A probe that went down.
    Lowered,
    /// The last probe did not pay and was taken back.
    Reverted,
    /// One less, for want of use.
    Shrunk,
}

impl Cap {
    /// A cap of `slots`, which never leaves `floor` to `ceiling`.
    pub(crate) fn new(slots: usize, floor: usize, ceiling: usize) -> Cap {
        let slots = slots.clamp(floor, ceiling);
        Cap {
            slots,
            floor,
            ceiling,
            still: 0,
            probe: None,
            level: None,
            peak: Reading::NONE,
            ups_left: 1,
            ups: 1,
        }
    }

    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    pub(crate) fn is_probing(&self) -> bool {
        self.probe.is_some()
    }

    /// One tick of at least 50 ms. A probe begins only if `may_probe`.
    pub(crate) fn tick(&mut self, lane: Lane, activity: &Activity, now: Reading, may_probe: bool) -> CapStep {
        let is_used_up = activity.pressed && activity.busy + 0.5 >= self.slots as f64;
        match self.probe.take() {
            Some(probe) => {
                if !self.conclude(lane, probe, activity, now) {
                    return CapStep::Reverted;
                }
            }
            None if is_used_up => self.settle(now),
            None => self.level = None,
        }
        if self.still > 0 {
            self.still -= 1;
            return CapStep::Held;
        }
        if !activity.pressed && activity.busy + 2.0 < self.slots as f64 && self.slots > self.floor {
            self.slots -= 1;
            return CapStep::Shrunk;
        }
        if may_probe && is_used_up && activity.completions >= COMPLETIONS_MIN {
            return self.begin_probe();
        }
        CapStep::Held
    }

    /// A tick without a probe, in which the cap was what held the lane back.
    fn settle(&mut self, now: Reading) {
        let Some(level) = self.level.as_mut().filter(|level| now.rate >= SHIFT * level.rate) else {
            // Another load: what it has in common with the one before is not known.
            self.ups_left = if self.level.is_some() { 0 } else { self.ups_left };
            self.level = Some(now);
            self.peak = now;
            return;
        };
        let mixed = |was: f64, is: f64| was + LEVEL_NEWEST * (is - was);
        level.rate = mixed(level.rate, now.rate);
        level.total = mixed(level.total, now.total);
        level.rings = now.rings;
        self.peak.rate = self.peak.rate.max(level.rate);
        self.peak.total = self.peak.total.max(level.total);
    }

    /// Keeps the probe or takes it back. Says whether it was kept.
    fn conclude(&mut self, lane: Lane, probe: Probe, activity: &Activity, now: Reading) -> bool {
        let Probe { direction, from } = probe;
        if direction == Direction::Up && activity.starved && activity.busy <= from as f64 {
            // The budget left no room to try, which says nothing about the cap.
            self.slots = from;
            return false;
        }
        let before = self.level.unwrap_or(now);
        if is_kept(lane, direction, &before, &self.peak, &now) {
            self.level = Some(now);
            self.peak.rate = self.peak.rate.max(now.rate);
            self.peak.total = self.peak.total.max(now.total);
            self.ups = 1;
            // What paid goes on.
            self.ups_left = if direction == Direction::Up { 1 } else { 0 };
            return true;
        }
        self.slots = from;
        self.still = STILL_TICKS;
        match direction {
            Direction::Up => self.ups_left = self.ups_left.saturating_sub(1),
            Direction::Down => {
                self.ups = (self.ups * 2).min(UPS_MAX);
                self.ups_left = self.ups;
            }
        }
        false
    }

    fn begin_probe(&mut self) -> CapStep {
        let raised = (self.slots + (self.slots / 10).max(1)).min(self.ceiling);
        // The way down is long after a load has changed; a large step also tells more clearly what it costs.
        let part = if self.ups == 1 { 4 } else { 10 };
        let lowered = self.slots.saturating_sub((self.slots / part).max(1)).max(self.floor);
        let goes_down = self.ups_left == 0 || raised == self.slots;
        let (direction, to) = match goes_down && lowered < self.slots {
            true => (Direction::Down, lowered),
            false => (Direction::Up, raised),
        };
        if to == self.slots {
            return CapStep::Held;
        }
        self.probe = Some(Probe { direction, from: self.slots });
        self.slots = to;
        match direction {
            Direction::Up => CapStep::Raised,
            Direction::Down => CapStep::Lowered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: f64 = 100.0;

    fn activity(busy: f64, pressed: bool) -> Activity {
        Activity { busy, completions: 100, rate: 0.0, pressed, starved: false }
    }

    fn reading(rate: f64) -> Reading {
        Reading { rate, total: rate, rings: None }
    }

    /// Ticks a pressed and fully used lane, whose rate at each cap is given; answers the caps after each tick.
    fn trace(cap: &mut Cap, ticks: usize, rate_at: impl Fn(usize) -> f64) -> Vec<usize> {
        let mut caps = Vec::new();
        for _ in 0..ticks {
            cap.tick(Lane::Push, &activity(BUSY, true), reading(rate_at(cap.slots())), true);
            caps.push(cap.slots());
        }
        caps
    }

    ///
    #[test]
    fn a_probe_without_gain_goes_back_and_the_lane_is_still_for_six_ticks() {
        let mut cap = Cap::new(20, 1, 128);
        let caps = trace(&mut cap, 9, |_| 1000.0);
        assert_eq!(caps, [22, 20, 20, 20, 20, 20, 20, 20, 15], "up, back, six still, then down");
    }

    #[test]
    fn a_raise_that_pays_is_kept_and_followed_by_the_next() {
        let mut cap = Cap::new(2, 1, 128);
        assert_eq!(trace(&mut cap, 4, |slots| 100.0 * slots as f64), [3, 4, 5, 6]);
    }

    #[test]
    fn the_cap_comes_down_to_the_best_and_up_to_it() {
        for start in [1, 2, 6, 12, 40] {
            let mut cap = Cap::new(start, 1, 128);
            let peak = |slots: usize| 1000.0 - 100.0 * (slots as f64 - 6.0).abs().min(9.0);
            let caps = trace(&mut cap, 150, peak);
            assert!(caps[100..].iter().all(|slots| (5..=7).contains(slots)), "from {start}: {caps:?}");
        }
    }

    #[test]
    fn on_a_plateau_the_fewest_are_the_best() {
        let mut cap = Cap::new(30, 1, 128);
        let caps = trace(&mut cap, 120, |slots| 100.0 * slots.min(8) as f64);
        assert!(caps[80..].iter().all(|slots| (7..=9).contains(slots)), "{caps:?}");
    }

    #[test]
    fn small_losses_do_not_add_up() {
        let mut cap = Cap::new(10, 1, 128);
        let caps = trace(&mut cap, 400, |slots| 1000.0 + 15.0 * slots as f64);
        assert!(caps.iter().all(|slots| (7..=11).contains(slots)), "{caps:?}");
    }

    #[test]
    fn a_cap_that_is_not_used_shrinks_to_the_floor() {
        let mut cap = Cap::new(6, 2, 128);
        let steps: Vec<_> =
            (0..6).map(|_| cap.tick(Lane::Maint, &activity(0.0, false), reading(0.0), true)).collect();
        assert_eq!(steps[..4], [CapStep::Shrunk; 4]);
        assert_eq!((steps[4], cap.slots()), (CapStep::Held, 2));
        let mut used = Cap::new(6, 2, 128);
        assert_eq!(used.tick(Lane::Maint, &activity(4.0, false), reading(0.0), true), CapStep::Held);
        assert_eq!(used.tick(Lane::Maint, &activity(3.0, true), reading(0.0), true), CapStep::Held);
    }

    #[test]
    fn too_few_completions_are_not_measured() {
        let mut cap = Cap::new(4, 1, 128);
        let few = Activity { completions: 7, ..activity(4.0, true) };
        assert_eq!(cap.tick(Lane::Push, &few, reading(14.0), true), CapStep::Held);
    }

    #[test]
    fn a_probe_that_the_budget_starved_is_taken_back_without_a_pause() {
        let mut cap = Cap::new(4, 1, 128);
        let starved = Activity { starved: true, ..activity(4.0, true) };
        assert_eq!(cap.tick(Lane::Push, &activity(4.0, true), reading(100.0), true), CapStep::Raised);
        assert_eq!(cap.tick(Lane::Push, &starved, reading(100.0), true), CapStep::Reverted);
        assert_eq!(cap.tick(Lane::Push, &activity(4.0, true), reading(100.0), true), CapStep::Raised);
    }

    #[test]
    fn a_cap_between_equal_bounds_stays() {
        let mut cap = Cap::new(2, 2, 2);
        assert_eq!(trace(&mut cap, 3, |_| 100.0), [2, 2, 2]);
        assert!(!cap.is_probing());
    }
}
