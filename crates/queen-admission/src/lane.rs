//! The four lanes, and what is counted for each.

use std::fmt;
use std::ops::{Index, IndexMut};
use std::time::Duration;

use crate::caps::Cap;
use crate::waiters::Waiters;

/// The kind of work that a write transaction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// A fused push, a `/transaction`, a streams cycle.
    Push,
    /// A claim.
    Pop,
    /// A fused ack, an ack by SQL, a lease extension.
    Ack,
    /// Retention, statistics, spool replay, timer fires.
    Maint,
}

impl Lane {
    /// Every lane, in the order in which they are listed.
    pub const ALL: [Lane; 4] = [Lane::Push, Lane::Pop, Lane::Ack, Lane::Maint];

    /// Every lane, in the order in which a free slot is offered: what finishes work goes before what brings more.
    pub const WAKE_ORDER: [Lane; 4] = [Lane::Ack, Lane::Pop, Lane::Push, Lane::Maint];

    /// The value of the label `lane` of the metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Lane::Push => "push",
            Lane::Pop => "pop",
            Lane::Ack => "ack",
            Lane::Maint => "maint",
        }
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One value for each lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerLane<T> {
    /// That of [`Lane::Push`].
    pub push: T,
    /// That of [`Lane::Pop`].
    pub pop: T,
    /// That of [`Lane::Ack`].
    pub ack: T,
    /// That of [`Lane::Maint`].
    pub maint: T,
}

impl<T> PerLane<T> {
    /// The value that `of` gives for each lane.
    pub fn from_fn(mut of: impl FnMut(Lane) -> T) -> PerLane<T> {
        PerLane { push: of(Lane::Push), pop: of(Lane::Pop), ack: of(Lane::Ack), maint: of(Lane::Maint) }
    }

    /// The values in the order of [`Lane::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Lane, &T)> {
        Lane::ALL.into_iter().map(|lane| (lane, &self[lane]))
    }
}

impl<T> Index<Lane> for PerLane<T> {
    type Output = T;

    fn index(&self, lane: Lane) -> &T {
        match lane {
            Lane::Push => &self.push,
            Lane::Pop => &self.pop,
            Lane::Ack => &self.ack,
            Lane::Maint => &self.maint,
        }
    }
}

impl<T> IndexMut<Lane> for PerLane<T> {
    fn index_mut(&mut self, lane: Lane) -> &mut T {
        match lane {
            Lane::Push => &mut self.push,
            Lane::Pop => &mut self.pop,
            Lane::Ack => &mut self.ack,
            Lane::Maint => &mut self.maint,
        }
    }
}

/// Where a lane stands: what is in flight and what waits, the cap, and the counts of the running tick.
#[derive(Debug)]
pub(crate) struct LaneState {
    pub(crate) in_flight: usize,
    pub(crate) waiters: Waiters,
    pub(crate) cap: Cap,
    pub(crate) waited: WaitCounts,
    /// The most that waited at once since somebody asked.
    pub(crate) waiting_peak: usize,
    tick: TickCounts,
}

/// What is counted from one tick to the next.
#[derive(Debug, Clone, Copy, Default)]
struct TickCounts {
    /// Integral of the slots in flight over time, in slot seconds, up to `since`.
    busy_area: f64,
    since: Duration,
    completions: u64,
    work: u64,
    pressed: bool,
    starved: bool,
}

/// What one lane did during one tick.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Activity {
    /// Mean number of slots in flight.
    pub(crate) busy: f64,
    pub(crate) completions: u64,
    /// Units of work committed a second.
    pub(crate) rate: f64,
    /// A request found the lane at its cap.
    pub(crate) pressed: bool,
    /// A request found the budget used up while its lane was under its cap.
    pub(crate) starved: bool,
}

impl LaneState {
    pub(crate) fn new(cap: Cap, now: Duration) -> LaneState {
        LaneState {
            in_flight: 0,
            waiters: Waiters::default(),
            cap,
            waited: WaitCounts::default(),
            waiting_peak: 0,
            tick: TickCounts { since: now, ..TickCounts::default() },
        }
    }

    pub(crate) fn is_at_cap(&self) -> bool {
        self.in_flight >= self.cap.slots()
    }

    /// Whether somebody waits who could have a slot if the budget had one.
    pub(crate) fn is_candidate(&self) -> bool {
        !self.waiters.is_empty() && !self.is_at_cap()
    }

    /// One slot more is in flight from `now` on.
    pub(crate) fn enter(&mut self, now: Duration) {
        self.integrate(now);
        self.in_flight += 1;
    }

    /// One slot less is in flight from `now` on.
    pub(crate) fn leave(&mut self, now: Duration) {
        self.integrate(now);
        self.in_flight -= 1;
    }

    pub(crate) fn completed(&mut self, work: u64) {
        self.tick.completions += 1;
        self.tick.work = self.tick.work.saturating_add(work);
    }

    /// A request could not be served at once. Says whether it was the budget that refused it.
    pub(crate) fn refused(&mut self) -> bool {
        let by_budget = !self.is_at_cap();
        self.tick.pressed |= !by_budget;
        self.tick.starved |= by_budget;
        by_budget
    }

    /// Ends the tick that began at `began`, and begins the next.
    pub(crate) fn end_tick(&mut self, began: Duration, now: Duration) -> Activity {
        self.integrate(now);
        let seconds = now.saturating_sub(began).as_secs_f64().max(1e-6);
        let counts = self.tick;
        self.tick = TickCounts { since: now, ..TickCounts::default() };
        Activity {
            busy: counts.busy_area / seconds,
            completions: counts.completions,
            rate: counts.work as f64 / seconds,
            pressed: counts.pressed,
            starved: counts.starved,
        }
    }

    fn integrate(&mut self, now: Duration) {
        self.tick.busy_area += self.in_flight as f64 * now.saturating_sub(self.tick.since).as_secs_f64();
        self.tick.since = now;
    }
}

/// How long requests of one lane waited for their slots, as counts below bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct WaitCounts {
    /// Waits that were not longer than the bound at the same place of [`WaitCounts::BOUNDS`] and longer than the one
    /// before it; the last place counts those above all bounds.
    pub counts: [u64; WaitCounts::BOUNDS.len() + 1],
    /// Sum of all waits.
    pub sum: Duration,
}

impl WaitCounts {
    /// Upper bounds in seconds.
    pub const BOUNDS: [f64; 11] = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

    /// Number of waits counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(crate) fn record(&mut self, waited: Duration) {
        let seconds = waited.as_secs_f64();
        self.counts[Self::BOUNDS.partition_point(|bound| *bound < seconds)] += 1;
        self.sum = self.sum.saturating_add(waited);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caps::Cap;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn a_tick_gives_the_mean_in_flight_and_the_work_a_second() {
        let mut lane = LaneState::new(Cap::new(4, 1, 16), ms(0));
        lane.enter(ms(0));
        lane.enter(ms(250));
        lane.completed(10);
        lane.leave(ms(500));
        lane.completed(20);
        lane.leave(ms(750));
        let activity = lane.end_tick(ms(0), ms(1000));
        assert!((activity.busy - 1.0).abs() < 1e-9, "{activity:?}");
        assert_eq!((activity.completions, activity.rate), (2, 30.0));
        let empty = lane.end_tick(ms(1000), ms(1500));
        assert_eq!((empty.busy, empty.completions, empty.rate), (0.0, 0, 0.0));
    }

    #[test]
    fn a_refusal_names_who_refused() {
        let mut lane = LaneState::new(Cap::new(1, 1, 16), ms(0));
        assert!(lane.refused(), "the lane is under its cap, so the budget it was");
        lane.enter(ms(1));
        assert!(!lane.refused());
        let activity = lane.end_tick(ms(0), ms(500));
        assert!(activity.pressed && activity.starved);
    }

    #[test]
    fn waits_are_counted_at_their_bound() {
        let mut waits = WaitCounts::default();
        for waited in [Duration::ZERO, Duration::from_micros(100), ms(2), ms(31_000)] {
            waits.record(waited);
        }
        assert_eq!((waits.counts[0], waits.counts[3], waits.counts[11], waits.total()), (2, 1, 1, 4));
    }
}
