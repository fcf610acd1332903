//! The whole arbiter without a lock, task or clock: events in, grants out.

use std::time::Duration;

use queen_types::TenantId;

use crate::caps::{Cap, CapStep};
use crate::lane::{Activity, Lane, LaneState, PerLane};
use crate::law::{Budget, Moved, Observed};
use crate::metrics::{LaneSnapshot, Snapshot};
use crate::options::Limits;
use crate::slots::{Held, SlotId, Slots};
use crate::trains::Trains;
use crate::verdict::{PopSample, Reading, Rings};
use crate::waiters::{Waiter, WaiterId};

/// A tick that follows the last one sooner measures nothing.
const TICK_MIN: Duration = Duration::from_millis(50);

/// Decides how many write transactions may be open, and whose turn it is. Every time is a duration since one start
/// that the owner chose, the same for all calls; a time before the latest one seen counts as that one.
#[derive(Debug)]
pub struct Arbiter {
    limits: Limits,
    budget: Budget,
    lanes: PerLane<LaneState>,
    slots: Slots,
    trains: Trains,
    next_waiter: u64,
    latest: Duration,
    /// When the running tick began.
    tick_began: Duration,
    ticks: usize,
    /// Something happened since the last tick.
    is_touched: bool,
    /// The counter of visits at the last tick that had a sample.
    visits: Option<u64>,
}

/// The answer to a request for a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It has one.
    Granted(SlotId),
    /// It waits: a [`Grant`] of a later event names it, unless a tick refuses it or its owner cancels it first.
    Waiting(WaiterId),
}

/// A slot for somebody who waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// Who gets it.
    pub waiter: WaiterId,
    /// Its lane.
    pub lane: Lane,
    /// The slot, which counts as held from this moment on.
    pub slot: SlotId,
    /// How long it was waited for.
    pub waited: Duration,
}

/// A request that waited until its deadline in vain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expired {
    /// Who it was; it does not wait any more.
    pub waiter: WaiterId,
    /// Its lane.
    pub lane: Lane,
    /// How long it waited.
    pub waited: Duration,
}

/// What a tick decided.
#[derive(Debug, Clone, PartialEq)]
pub struct Ticked {
    /// Those who must not wait any longer.
    pub expired: Vec<Expired>,
    /// Set when the budget moved by a slot or more.
    pub moved: Option<Moved>,
    /// What happened to the cap of each lane.
    pub caps: PerLane<CapStep>,
    /// Whether another tick has something to do. False: none is needed before the next request.
    pub is_pending: bool,
}

impl Arbiter {
    /// An arbiter at its start.
    pub fn new(limits: Limits, now: Duration) -> Arbiter {
        let cap = |lane| Cap::new(limits.lane_init[lane], limits.lane_floor[lane], limits.ceiling);
        Arbiter {
            budget: Budget::new(&limits),
            lanes: PerLane::from_fn(|lane| LaneState::new(cap(lane), now)),
            slots: Slots::default(),
            trains: Trains::new(limits.train_gap),
            limits,
            next_waiter: 0,
            latest: now,
            tick_began: now,
            ticks: 0,
            is_touched: false,
            visits: None,
        }
    }

    /// Asks for a slot, and waits in line if there is none, until `deadline` at the latest.
    pub fn acquire(&mut self, lane: Lane, tenant: TenantId, now: Duration, deadline: Duration) -> Answer {
        if let Some(slot) = self.try_acquire(lane, now) {
            return Answer::Granted(slot);
        }
        let id = WaiterId(self.next_waiter);
        self.next_waiter += 1;
        let state = &mut self.lanes[lane];
        state.waiters.add(tenant, id, Waiter { since: self.latest, deadline });
        state.waiting_peak = state.waiting_peak.max(state.waiters.len());
        Answer::Waiting(id)
    }

    /// Asks for a slot that is free at once. Nobody who waits is overtaken: whoever waits has no right to a slot that
    /// is free.
    pub fn try_acquire(&mut self, lane: Lane, now: Duration) -> Option<SlotId> {
        let now = self.touch(now);
        let has_budget = self.slots.len() < self.budget.slots();
        let state = &mut self.lanes[lane];
        if !has_budget || state.is_at_cap() {
            state.refused();
            return None;
        }
        state.waited.record(Duration::ZERO);
        Some(self.hold(lane, now))
    }

    /// Forgets a request that waits. False if it does not: it was granted, refused or cancelled before.
    pub fn cancel(&mut self, lane: Lane, tenant: TenantId, waiter: WaiterId) -> bool {
        self.lanes[lane].waiters.remove(tenant, waiter)
    }

    /// A transaction that holds a slot of `lane` committed: its commit alone took `round_trip`, and it carried `work`
    /// units, messages for instance, in which the gain of a probe is measured. A transaction that failed or found
    /// nothing to do reports nothing.
    pub fn committed(&mut self, lane: Lane, now: Duration, round_trip: Duration, work: u64) {
        let now = self.touch(now);
        self.trains.completed(now, round_trip);
        self.lanes[lane].completed(work);
    }

    /// Gives a slot back; what becomes free goes to those who wait.
    pub fn release(&mut self, slot: SlotId, now: Duration, grants: &mut Vec<Grant>) {
        let now = self.touch(now);
        if let Some(held) = self.slots.release(slot) {
            self.lanes[held.lane].leave(now);
            self.offer(now, grants);
        }
    }

    /// Adapts the budget and the caps to what happened since the last tick, and refuses whoever waited too long. A
    /// tick that follows the last one in less than 50 ms only does the latter.
    pub fn tick(&mut self, now: Duration, pop: Option<PopSample>, grants: &mut Vec<Grant>) -> Ticked {
        let now = self.advance(now);
        let expired = self.expire(now);
        let mut ticked =
            Ticked { expired, moved: None, caps: PerLane::from_fn(|_| CapStep::Held), is_pending: true };
        if now.saturating_sub(self.tick_began) >= TICK_MIN {
            self.adapt(now, pop, &mut ticked);
            self.is_touched = false;
        }
        self.offer(now, grants);
        ticked.is_pending = self.is_pending();
        ticked
    }

    /// Takes everybody who waits out of the lines; they get no grant.
    pub fn refuse_all(&mut self) -> Vec<WaiterId> {
        let all = Lane::ALL.into_iter().flat_map(|lane| self.lanes[lane].waiters.take_all());
        all.map(|(id, _)| id).collect()
    }

    /// Whether a tick has something to do: a slot is in flight, somebody waits, a probe wants its verdict, or something
    /// happened since the last tick.
    pub fn is_pending(&self) -> bool {
        let is_busy = |lane: &LaneState| !lane.waiters.is_empty() || lane.cap.is_probing();
        self.is_touched || self.slots.len() > 0 || self.lanes.iter().any(|(_, lane)| is_busy(lane))
    }

    /// Slots in flight, over all lanes.
    pub fn in_flight(&self) -> usize {
        self.slots.len()
    }

    /// What the metrics show.
    pub fn snapshot(&mut self, now: Duration) -> Snapshot {
        let now = self.advance(now);
        self.trains.advance(now);
        let age = |since: Option<Duration>| since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        Snapshot {
            budget: self.budget.value(),
            mode: self.budget.mode(),
            last: self.budget.last(),
            oldest: age(self.slots.oldest()),
            trains: self.trains.stats(),
            lanes: PerLane::from_fn(|lane| {
                let state = &self.lanes[lane];
                LaneSnapshot {
                    in_flight: state.in_flight,
                    waiting: state.waiters.len(),
                    cap: state.cap.slots(),
                    oldest_wait: age(state.waiters.oldest()),
                    waits: state.waited,
                }
            }),
        }
    }

    /// The most requests that waited at once in each lane since the last call.
    pub fn take_waiting_peaks(&mut self) -> PerLane<usize> {
        PerLane::from_fn(|lane| {
            let state = &mut self.lanes[lane];
            std::mem::replace(&mut state.waiting_peak, state.waiters.len())
        })
    }

    fn advance(&mut self, now: Duration) -> Duration {
        self.latest = self.latest.max(now);
        self.latest
    }

    /// Something happens. After a rest, which no tick measured, the running tick begins here.
    fn touch(&mut self, now: Duration) -> Duration {
        let now = self.advance(now);
        if !self.is_touched {
            if !self.is_pending() {
                self.begin_tick(now);
            }
            self.is_touched = true;
        }
        now
    }

    fn begin_tick(&mut self, now: Duration) {
        for lane in Lane::ALL {
            self.lanes[lane].end_tick(self.tick_began, now);
        }
        self.visits = None;
        self.tick_began = now;
    }

    fn hold(&mut self, lane: Lane, now: Duration) -> SlotId {
        self.lanes[lane].enter(now);
        self.slots.hold(Held { lane, since: now })
    }

    fn offer(&mut self, now: Duration, grants: &mut Vec<Grant>) {
        while let Some(lane) = self.next_lane()
            && let Some((waiter, Waiter { since, .. })) = self.lanes[lane].waiters.take()
        {
            let waited = now.saturating_sub(since);
            self.lanes[lane].waited.record(waited);
            grants.push(Grant { waiter, lane, slot: self.hold(lane, now), waited });
        }
    }

    /// The lane that the next free slot goes to: the first in the wake order that is below its share, else the first.
    fn next_lane(&self) -> Option<Lane> {
        if self.slots.len() >= self.budget.slots() {
            return None;
        }
        let mut candidates = Lane::WAKE_ORDER.into_iter().filter(|lane| self.lanes[*lane].is_candidate());
        let is_below = |lane: &Lane| {
            let share = (self.budget.value() * self.limits.shares[*lane]).floor().max(1.0);
            (self.lanes[*lane].in_flight as f64) < share
        };
        candidates.clone().find(is_below).or_else(|| candidates.next())
    }

    fn expire(&mut self, now: Duration) -> Vec<Expired> {
        let mut expired = Vec::new();
        for lane in Lane::ALL {
            let due = self.lanes[lane].waiters.take_due(now);
            expired.extend(due.into_iter().map(|(waiter, Waiter { since, .. })| Expired {
                waiter,
                lane,
                waited: now.saturating_sub(since),
            }));
        }
        expired
    }

    fn adapt(&mut self, now: Duration, pop: Option<PopSample>, ticked: &mut Ticked) {
        let seconds = now.saturating_sub(self.tick_began).as_secs_f64();
        // Whoever still waits was refused in this tick too, whenever that first happened.
        let has_budget = self.slots.len() < self.budget.slots();
        for lane in Lane::ALL {
            let state = &mut self.lanes[lane];
            if !state.waiters.is_empty() && (!has_budget || state.is_at_cap()) {
                state.refused();
            }
        }
        let began = self.tick_began;
        let activities = PerLane::from_fn(|lane| self.lanes[lane].end_tick(began, now));
        self.tick_began = now;
        self.ticks = self.ticks.wrapping_add(1);

        self.trains.advance(now);
        ticked.moved = self.budget.tick(&Observed {
            cycle: self.trains.recent_cycle(),
            oldest: self.slots.oldest().map_or(Duration::ZERO, |since| now.saturating_sub(since)),
            caps: self.lanes.iter().map(|(_, lane)| lane.cap.slots()).sum(),
            saturated: activities.iter().any(|(_, activity)| activity.starved),
            unsynced: self.trains.looks_unsynced(),
        });
        let rings = self.rings(pop, seconds);
        self.adapt_caps(&activities, rings, &mut ticked.caps);
    }

    fn rings(&mut self, pop: Option<PopSample>, seconds: f64) -> Option<Rings> {
        let visits_before = std::mem::replace(&mut self.visits, pop.map(|sample| sample.visits));
        let sample = pop?;
        Some(Rings {
            oldest_ready: sample.oldest_ready,
            ready: sample.ready as f64,
            visits_per_s: sample.visits.saturating_sub(visits_before?) as f64 / seconds,
        })
    }

    /// One lane probes at a time, so that a verdict is about one change; the lanes take turns in beginning.
    fn adapt_caps(
        &mut self,
        activities: &PerLane<Activity>,
        rings: Option<Rings>,
        steps: &mut PerLane<CapStep>,
    ) {
        let total: f64 = activities.iter().map(|(_, activity)| activity.rate).sum();
        let mut order = Lane::ALL;
        order.rotate_left(self.ticks % Lane::ALL.len());
        order.sort_by_key(|lane| !self.lanes[*lane].cap.is_probing());
        let mut may_probe = true;
        for lane in order {
            let activity = &activities[lane];
            let rings = rings.filter(|_| lane == Lane::Pop);
            let cap = &mut self.lanes[lane].cap;
            steps[lane] = cap.tick(lane, activity, Reading { rate: activity.rate, total, rings }, may_probe);
            may_probe &= !cap.is_probing();
        }
    }
}
