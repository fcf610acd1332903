//! Traces of events against the arbiter: who is served, and when.

use std::time::Duration;

use proptest::prelude::*;
use queen_admission::{Answer, Arbiter, Grant, Lane, Limits, Options, PerLane, SlotId, WaiterId};
use queen_types::{TenantId, Uuid};

const FOREVER: Duration = Duration::from_secs(1 << 30);

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn tenant(number: u128) -> TenantId {
    TenantId(Uuid::from_u128(number))
}

/// A budget of `budget` slots that stays, and lanes that may use all of it.
fn open_limits(budget: usize) -> Limits {
    let (mut limits, _) = Options::default().limits();
    (limits.min, limits.init, limits.ceiling) = (budget, budget, budget);
    limits.lane_floor = PerLane { push: 1, pop: 1, ack: 1, maint: 1 };
    limits.lane_init = PerLane::from_fn(|_| budget);
    limits
}

fn waiter(answer: Answer) -> WaiterId {
    match answer {
        Answer::Waiting(id) => id,
        Answer::Granted(slot) => panic!("{slot:?} was free"),
    }
}

fn fill(arbiter: &mut Arbiter, lane: Lane, count: usize) -> Vec<SlotId> {
    (0..count).map(|_| arbiter.try_acquire(lane, ms(0)).expect("free")).collect()
}

fn release(arbiter: &mut Arbiter, slot: SlotId) -> Vec<Grant> {
    let mut grants = Vec::new();
    arbiter.release(slot, ms(1), &mut grants);
    grants
}

fn served(arbiter: &mut Arbiter, slots: Vec<SlotId>) -> Vec<Lane> {
    slots.into_iter().flat_map(|slot| release(arbiter, slot)).map(|grant| grant.lane).collect()
}

///
#[test]
fn a_freed_slot_goes_to_ack_then_pop_then_push_then_maintenance() {
    let mut arbiter = Arbiter::new(open_limits(8), ms(0));
    let held = fill(&mut arbiter, Lane::Maint, 8);
    for lane in [Lane::Maint, Lane::Push, Lane::Pop, Lane::Ack] {
        waiter(arbiter.acquire(lane, TenantId::DEFAULT, ms(0), FOREVER));
    }
    assert_eq!(served(&mut arbiter, held), [Lane::Ack, Lane::Pop, Lane::Push, Lane::Maint]);
}

/// the share of maintenance is below one slot here, and counts as one.
#[test]
fn maintenance_below_its_share_goes_before_lanes_above_theirs() {
    let mut arbiter = Arbiter::new(open_limits(8), ms(0));
    let mut held = fill(&mut arbiter, Lane::Ack, 3);
    held.extend(fill(&mut arbiter, Lane::Pop, 4));
    held.extend(fill(&mut arbiter, Lane::Push, 1));
    for lane in Lane::ALL {
        for _ in 0..3 {
            waiter(arbiter.acquire(lane, TenantId::DEFAULT, ms(0), FOREVER));
        }
    }
    // Shares of 8: ack 2, pop 3, push 2, maintenance 1. Three acks, four pops and a push are released, in this order.
    let order = served(&mut arbiter, held);
    let lanes = [Lane::Push, Lane::Ack, Lane::Ack, Lane::Maint, Lane::Pop, Lane::Pop, Lane::Pop, Lane::Push];
    assert_eq!(order, lanes);
}

#[test]
fn tenants_of_a_lane_take_turns() {
    let mut arbiter = Arbiter::new(open_limits(1), ms(0));
    let mut slot = fill(&mut arbiter, Lane::Pop, 1).remove(0);
    let line: Vec<WaiterId> = [1, 1, 1, 2, 1, 3]
        .map(|number| waiter(arbiter.acquire(Lane::Pop, tenant(number), ms(0), FOREVER)))
        .to_vec();
    let mut order = Vec::new();
    for _ in 0..6 {
        let grant = release(&mut arbiter, slot).remove(0);
        order.push(line.iter().position(|id| *id == grant.waiter).unwrap());
        slot = grant.slot;
    }
    assert_eq!(order, [0, 3, 5, 1, 2, 4]);
}

#[test]
fn a_lane_uses_what_others_leave_up_to_its_cap() {
    let mut limits = open_limits(8);
    limits.lane_init.push = 6;
    let mut arbiter = Arbiter::new(limits, ms(0));
    fill(&mut arbiter, Lane::Push, 6);
    assert_eq!(arbiter.try_acquire(Lane::Push, ms(0)), None);
    fill(&mut arbiter, Lane::Ack, 2);
    assert_eq!(arbiter.in_flight(), 8);
    assert_eq!(arbiter.try_acquire(Lane::Pop, ms(0)), None);
}

#[test]
fn a_grown_budget_serves_who_waits_at_the_tick_itself() {
    let mut arbiter = Arbiter::new(Options { init: Some(4), ..Options::default() }.limits().0, ms(0));
    for train in 0..4 {
        arbiter.committed(Lane::Push, ms(400 + train * 20), ms(4), 1);
    }
    for lane in [Lane::Push, Lane::Push, Lane::Ack, Lane::Ack] {
        assert!(arbiter.try_acquire(lane, ms(495)).is_some());
    }
    let id = waiter(arbiter.acquire(Lane::Pop, TenantId::DEFAULT, ms(495), FOREVER));
    let mut grants = Vec::new();
    let ticked = arbiter.tick(ms(500), None, &mut grants);
    assert_eq!(ticked.moved.map(|moved| (moved.to.floor(), moved.reason.as_str())), Some((5.0, "saturated")));
    assert_eq!((grants.len(), grants[0].waiter, grants[0].waited), (1, id, ms(5)));
}

/// through the arbiter.
#[test]
fn an_old_slot_of_maintenance_does_not_shrink_the_budget() {
    for (lane, expected) in [(Lane::Maint, 40.0), (Lane::Push, 40.0 - 40.0_f64.ln())] {
        let mut arbiter = Arbiter::new(Options { init: Some(40), ..Options::default() }.limits().0, ms(0));
        fill(&mut arbiter, lane, 1);
        for train in 0..20 {
            arbiter.committed(Lane::Ack, ms(160 + 2 * train), ms(2), 1);
        }
        arbiter.tick(ms(200), None, &mut Vec::new());
        let snapshot = arbiter.snapshot(ms(200));
        assert!((snapshot.budget - expected).abs() < 1e-9, "{lane}: {snapshot:?}");
        assert_eq!(snapshot.trains.cycle, Some(ms(2)));
        assert_eq!(snapshot.oldest, if lane == Lane::Maint { ms(0) } else { ms(200) });
    }
}

/// through the arbiter.
#[test]
fn unsynced_commits_pin_the_budget_and_wake_who_waits() {
    let mut arbiter = Arbiter::new(Options::default().limits().0, ms(0));
    let held = fill(&mut arbiter, Lane::Pop, 4).len()
        + fill(&mut arbiter, Lane::Push, 2).len()
        + fill(&mut arbiter, Lane::Ack, 2).len();
    assert_eq!(held, 8);
    waiter(arbiter.acquire(Lane::Maint, TenantId::DEFAULT, ms(0), FOREVER));
    let mut grants = Vec::new();
    for tick in 1..=3 {
        arbiter.committed(Lane::Push, ms(tick * 500 - 1), Duration::from_micros(50), 1);
        arbiter.tick(ms(tick * 500), None, &mut grants);
        assert_eq!(grants.len(), usize::from(tick == 3));
    }
    let snapshot = arbiter.snapshot(ms(1500));
    assert_eq!((snapshot.budget, snapshot.mode_value()), (64.0, 1.0));
    for _ in 0..30 {
        arbiter.committed(Lane::Push, ms(1999), ms(3), 1);
    }
    arbiter.tick(ms(2000), None, &mut grants);
    let snapshot = arbiter.snapshot(ms(2000));
    assert_eq!(
        (snapshot.budget, snapshot.mode.as_str(), snapshot.last.as_str()),
        (8.0, "normal", "signal-restored")
    );
}

#[test]
fn who_waited_too_long_is_refused_at_a_tick() {
    let mut arbiter = Arbiter::new(open_limits(1), ms(0));
    let slot = fill(&mut arbiter, Lane::Ack, 1).remove(0);
    let first = waiter(arbiter.acquire(Lane::Ack, TenantId::DEFAULT, ms(10), ms(100)));
    let second = waiter(arbiter.acquire(Lane::Ack, TenantId::DEFAULT, ms(10), ms(101)));
    let mut grants = Vec::new();
    let ticked = arbiter.tick(ms(100), None, &mut grants);
    assert_eq!(ticked.expired.iter().map(|e| (e.waiter, e.waited)).collect::<Vec<_>>(), [(first, ms(90))]);
    assert_eq!(release(&mut arbiter, slot)[0].waiter, second);
    assert!(!arbiter.cancel(Lane::Ack, TenantId::DEFAULT, first));
}

#[test]
fn an_arbiter_with_nothing_to_do_wants_no_tick() {
    let mut arbiter = Arbiter::new(Options::default().limits().0, ms(0));
    assert!(!arbiter.is_pending());
    let slot = arbiter.try_acquire(Lane::Pop, ms(60_000)).unwrap();
    assert!(arbiter.is_pending());
    assert!(arbiter.tick(ms(60_500), None, &mut Vec::new()).is_pending, "a slot is in flight");
    assert!(arbiter.tick(ms(61_000), None, &mut Vec::new()).is_pending, "still");
    release(&mut arbiter, slot);
    assert!(arbiter.is_pending(), "something happened");
    assert!(!arbiter.tick(ms(61_500), None, &mut Vec::new()).is_pending);
}

#[test]
fn what_the_metrics_show() {
    let mut arbiter = Arbiter::new(open_limits(2), ms(0));
    let slots = fill(&mut arbiter, Lane::Push, 2);
    waiter(arbiter.acquire(Lane::Pop, TenantId::DEFAULT, ms(0), FOREVER));
    waiter(arbiter.acquire(Lane::Pop, TenantId::DEFAULT, ms(3), FOREVER));
    let snapshot = arbiter.snapshot(ms(10));
    assert_eq!(snapshot.lanes_text(), "push:2/2w0 pop:0/2w2 ack:0/2w0 maint:0/2w0");
    assert_eq!((snapshot.oldest, snapshot.oldest_wait()), (ms(10), ms(10)));
    release(&mut arbiter, slots[0]);
    assert_eq!(arbiter.take_waiting_peaks().pop, 2);
    assert_eq!(arbiter.take_waiting_peaks().pop, 1);
    let snapshot = arbiter.snapshot(ms(10));
    assert_eq!((snapshot.lanes.pop.waits.total(), snapshot.lanes.push.waits.total()), (1, 2));
}

/// One step of a random sequence; numbers pick among what there is.
#[derive(Debug, Clone)]
enum Step {
    Acquire { lane: usize, tenant: u128, patience_ms: u64 },
    Try { lane: usize },
    Cancel { which: usize },
    Release { which: usize },
    Commit { lane: usize, round_trip_us: u64 },
    Tick { after_ms: u64 },
    Refuse,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..4_usize, 0..4_u128, 1..2000_u64)
            .prop_map(|(lane, tenant, patience_ms)| Step::Acquire { lane, tenant, patience_ms }),
        2 => (0..4_usize).prop_map(|lane| Step::Try { lane }),
        3 => any::<usize>().prop_map(|which| Step::Cancel { which }),
        7 => any::<usize>().prop_map(|which| Step::Release { which }),
        4 => (0..4_usize, 10..20_000_u64)
            .prop_map(|(lane, round_trip_us)| Step::Commit { lane, round_trip_us }),
        2 => (1..900_u64).prop_map(|after_ms| Step::Tick { after_ms }),
        1 => Just(Step::Refuse),
    ]
}

/// What the arbiter has to agree with.
struct Model {
    arbiter: Arbiter,
    limits: Limits,
    now: Duration,
    held: Vec<(SlotId, Lane)>,
    waiting: Vec<(WaiterId, Lane, TenantId, Duration)>,
}

impl Model {
    fn run(&mut self, step: Step) {
        let mut grants = Vec::new();
        self.now += Duration::from_micros(700);
        match step {
            Step::Acquire { lane, tenant: number, patience_ms } => {
                let (lane, tenant) = (Lane::ALL[lane], tenant(number));
                let deadline = self.now + ms(patience_ms);
                match self.arbiter.acquire(lane, tenant, self.now, deadline) {
                    Answer::Granted(slot) => self.held.push((slot, lane)),
                    Answer::Waiting(id) => self.waiting.push((id, lane, tenant, deadline)),
                }
            }
            Step::Try { lane } => {
                let slot = self.arbiter.try_acquire(Lane::ALL[lane], self.now);
                self.held.extend(slot.map(|slot| (slot, Lane::ALL[lane])));
            }
            Step::Cancel { which } if !self.waiting.is_empty() => {
                let (id, lane, tenant, _) = self.waiting.remove(which % self.waiting.len());
                assert!(self.arbiter.cancel(lane, tenant, id));
            }
            Step::Release { which } if !self.held.is_empty() => {
                let (slot, _) = self.held.remove(which % self.held.len());
                self.arbiter.release(slot, self.now, &mut grants);
                self.arbiter.release(slot, self.now, &mut grants);
            }
            Step::Commit { lane, round_trip_us } => {
                self.arbiter.committed(Lane::ALL[lane], self.now, Duration::from_micros(round_trip_us), 3);
            }
            Step::Tick { after_ms } => {
                self.now += ms(after_ms);
                let ticked = self.arbiter.tick(self.now, None, &mut grants);
                let expired: Vec<WaiterId> = ticked.expired.iter().map(|expired| expired.waiter).collect();
                self.waiting.retain(|(id, .., deadline)| {
                    assert_eq!(*deadline <= self.now, expired.contains(id));
                    !expired.contains(id)
                });
            }
            Step::Refuse => {
                let mut refused = self.arbiter.refuse_all();
                refused.sort();
                let mut all: Vec<WaiterId> = self.waiting.drain(..).map(|(id, ..)| id).collect();
                all.sort();
                assert_eq!(refused, all);
            }
            Step::Cancel { .. } | Step::Release { .. } => (),
        }
        for grant in grants {
            let place = self.waiting.iter().position(|(id, ..)| *id == grant.waiter).expect("it waited");
            let (id, lane, tenant, _) = self.waiting.remove(place);
            assert_eq!(lane, grant.lane);
            let is_first =
                self.waiting.iter().all(|(other, l, t, _)| (*l, *t) != (lane, tenant) || *other > id);
            assert!(is_first, "a tenant's requests are served in order");
            self.held.push((grant.slot, lane));
        }
        self.check();
    }

    fn check(&mut self) {
        let snapshot = self.arbiter.snapshot(self.now);
        let mut sum = 0;
        for (lane, state) in snapshot.lanes.iter() {
            let held = self.held.iter().filter(|(_, other)| *other == lane).count();
            let waiting = self.waiting.iter().filter(|(_, other, ..)| *other == lane).count();
            assert_eq!((state.in_flight, state.waiting), (held, waiting), "{lane}");
            assert!(self.limits.lane_floor[lane] <= state.cap && state.cap <= self.limits.ceiling);
            let is_refused = state.in_flight >= state.cap || self.held.len() >= snapshot.budget as usize;
            assert!(waiting == 0 || is_refused, "nobody waits for a slot that is free: {snapshot:?}");
            sum += held;
        }
        assert_eq!(self.arbiter.in_flight(), sum, "the sum of the lanes is the number of slots");
        assert!(sum <= self.limits.ceiling, "{sum}");
        assert!(self.limits.min as f64 <= snapshot.budget && snapshot.budget <= self.limits.ceiling as f64);
        assert!(sum == 0 || self.arbiter.is_pending());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn slots_are_accounted_for(
        pool_size in 1..40_usize,
        retention_parallelism in 1..30_usize,
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let (limits, _) = Options { pool_size, retention_parallelism, ..Options::default() }.limits();
        let arbiter = Arbiter::new(limits.clone(), ms(0));
        let mut model = Model { arbiter, limits, now: ms(0), held: Vec::new(), waiting: Vec::new() };
        for step in steps {
            model.run(step);
        }
        // Everything goes back: whoever waits is served, and nothing is left.
        while !model.held.is_empty() {
            model.run(Step::Release { which: 0 });
        }
        prop_assert!(model.waiting.is_empty());
        prop_assert_eq!(model.arbiter.in_flight(), 0);
        for _ in 0..3 {
            model.run(Step::Tick { after_ms: 500 });
        }
        prop_assert!(!model.arbiter.is_pending());
    }
}
