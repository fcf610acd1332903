//! Random pushes, pops, acks, lost hints and lost pops against a naive model: a database that knows the truth, and sets
//! where the ring has lists.

mod common;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use common::{Bed, id, ms, name};
use proptest::prelude::*;
use queen_hotlist::{Checkout, ClaimId, Deferral, Millis, Options, Release, State, Verdict};

const PARTITIONS: u128 = 6;
const LEASE_MS: u64 = 3_000;

/// What PostgreSQL knows of one partition and the group.
#[derive(Debug, Default)]
struct Truth {
    /// When each message was committed; its offset is its position.
    messages: Vec<Millis>,
    committed: usize,
    lease: Option<Lease>,
    retry_at: Option<Millis>,
}

#[derive(Debug, Clone, Copy)]
struct Lease {
    until: Millis,
    end: usize,
    /// `None`: of another broker, or of a pop that bypasses the ring.
    claim: Option<ClaimId>,
}

impl Truth {
    fn pending(&self) -> bool {
        self.committed < self.messages.len()
    }

    /// The end of what can be delivered, and when more can.
    fn visible(&self, deferral: Deferral, now: Millis) -> (usize, Option<Millis>) {
        let hidden = |at: &&Millis| at.plus(deferral.delayed) > now;
        let pending = &self.messages[self.committed..];
        let visible = pending.iter().take_while(|at| !hidden(at)).count();
        let next = pending.get(visible).map(|at| at.plus(deferral.delayed));
        let held = pending.first().map(|first| first.plus(deferral.window)).filter(|until| *until > now);
        match held {
            Some(until) if pending.len() < 100 => {
                (self.committed, Some(next.map_or(until, |n| n.max(until))))
            }
            _ => (self.committed + visible, next),
        }
    }

    fn claim(
        &mut self,
        claim: Option<ClaimId>,
        budget: usize,
        auto: bool,
        deferral: Deferral,
        now: Millis,
    ) -> (Verdict, usize) {
        self.lease = self.lease.filter(|lease| lease.until > now);
        let busy = self.lease.map(|lease| lease.until).or(self.retry_at.filter(|at| *at > now));
        if let Some(until) = busy {
            return (Verdict::Leased { rest: until.since(now) }, 0);
        }
        if !self.pending() {
            return (Verdict::Empty { hidden: false }, 0);
        }
        let (end, next) = self.visible(deferral, now);
        let end = end.min(self.committed + budget);
        if end == self.committed {
            let rest = next.expect("what is pending and hidden shows some day").since(now);
            return (Verdict::Deferred { rest }, 0);
        }
        let (took, left) = (end - self.committed, (self.messages.len() - end) as u64);
        self.retry_at = None;
        if auto {
            self.committed = end;
            return (Verdict::TookAutoAck { left }, took);
        }
        self.lease = Some(Lease { until: now.plus(ms(LEASE_MS)), end, claim });
        (Verdict::Took { lease: ms(LEASE_MS), left }, took)
    }
}

#[derive(Debug, Clone)]
enum Op {
    /// A commit here, announced after as many further steps; `None`: never.
    Push {
        partition: u128,
        messages: usize,
        announced: Option<u8>,
    },
    Checkout {
        partitions: usize,
        messages: u64,
        auto: bool,
    },
    CheckoutOne {
        partition: u128,
    },
    /// The claim statement of a flight runs.
    Claim {
        flight: prop::sample::Index,
    },
    /// The flight ends, claimed or not.
    Checkin {
        flight: prop::sample::Index,
    },
    /// The flight is lost.
    Lose {
        flight: prop::sample::Index,
    },
    /// Another broker, or a pop that bypasses the ring, claims.
    Foreign {
        partition: u128,
    },
    /// The lease of a partition ends; announced after as many further steps.
    Ack {
        partition: u128,
        how: How,
        announced: u8,
    },
    Pass {
        millis: u64,
    },
    Tick,
    Reseed {
        partition: u128,
    },
}

#[derive(Debug, Clone, Copy)]
enum How {
    Covered,
    Nack,
    Retry(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let partition = || 1..=PARTITIONS;
    let flight = any::<prop::sample::Index>;
    let how = prop_oneof![
        4 => Just(How::Covered),
        1 => Just(How::Nack),
        1 => (1u64..2_000).prop_map(How::Retry)
    ];
    let announced = prop_oneof![6 => Just(Some(0)), 3 => (1u8..4).prop_map(Some), 1 => Just(None)];
    prop_oneof![
        6 => (partition(), 1usize..5, announced)
            .prop_map(|(partition, messages, announced)| Op::Push { partition, messages, announced }),
        1 => partition().prop_map(|partition| Op::Push { partition, messages: 120, announced: Some(0) }),
        6 => (0usize..4, 1u64..12, prop::bool::weighted(0.3))
            .prop_map(|(partitions, messages, auto)| Op::Checkout { partitions, messages, auto }),
        1 => partition().prop_map(|partition| Op::CheckoutOne { partition }),
        8 => flight().prop_map(|flight| Op::Claim { flight }),
        8 => flight().prop_map(|flight| Op::Checkin { flight }),
        1 => flight().prop_map(|flight| Op::Lose { flight }),
        1 => partition().prop_map(|partition| Op::Foreign { partition }),
        6 => (partition(), how, prop_oneof![4 => Just(0u8), 1 => 1u8..4])
            .prop_map(|(partition, how, announced)| Op::Ack { partition, how, announced }),
        4 => prop_oneof![1u64..60, 200u64..1_200, 3_000u64..4_000].prop_map(|millis| Op::Pass { millis }),
        4 => Just(Op::Tick),
        1 => partition().prop_map(|partition| Op::Reseed { partition }),
    ]
}

#[derive(Debug)]
struct Flight {
    checkout: Checkout,
    messages: u64,
    auto: bool,
    claimed: bool,
    /// Partitions whose verdict is `NotEvaluated`.
    waiting: Vec<u128>,
}

#[derive(Debug)]
enum Late {
    Mark(u128, u32),
    Release(u128, Option<ClaimId>, Release),
}

struct World {
    bed: Bed,
    truth: BTreeMap<u128, Truth>,
    flights: Vec<Flight>,
    late: Vec<(u8, Late)>,
    /// Partitions with an announcement that never came: they may be missing until a walk.
    excused: BTreeSet<u128>,
    /// The ready list as sets: those of one set became ready in the same step.
    order: VecDeque<BTreeSet<u128>>,
    delivered: usize,
}

impl World {
    fn new(deferral: Deferral, revisit: u64) -> World {
        let options = Options { revisit_max: ms(revisit), ..Options::default() };
        World {
            bed: Bed::with(options, deferral),
            truth: (1..=PARTITIONS).map(|n| (n, Truth::default())).collect(),
            flights: Vec::new(),
            late: Vec::new(),
            excused: BTreeSet::new(),
            order: VecDeque::new(),
            delivered: 0,
        }
    }

    fn truth(&mut self, n: u128) -> &mut Truth {
        self.truth.get_mut(&n).expect("every partition has its truth")
    }

    fn state(&self, n: u128) -> State {
        self.bed.queue.entry(self.bed.ring, id(n)).map_or(State::Idle, |entry| entry.state)
    }

    fn in_state(&self, state: State) -> BTreeSet<u128> {
        (1..=PARTITIONS).filter(|n| self.state(*n) == state).collect()
    }

    fn step(&mut self, op: &Op) {
        let waiting = self.apply(op);
        self.follow(&waiting);
        self.check();
        for (steps, _) in &mut self.late {
            *steps = steps.saturating_sub(1);
        }
        while let Some(at) = self.late.iter().position(|(steps, _)| *steps == 0) {
            let (_, late) = self.late.remove(at);
            self.announce(late);
            self.follow(&[]);
            self.check();
        }
    }

    /// Applies one step; answers the partitions that go back to the head of the list, in order.
    fn apply(&mut self, op: &Op) -> Vec<u128> {
        let now = self.bed.now;
        let deferral = self.bed.queue.deferral();
        match *op {
            Op::Push { partition, messages, announced } => {
                let landed = std::iter::repeat_n(now, messages);
                self.truth(partition).messages.extend(landed);
                match announced {
                    Some(0) => self.announce(Late::Mark(partition, messages as u32)),
                    Some(steps) => self.late.push((steps, Late::Mark(partition, messages as u32))),
                    None => {
                        self.excused.insert(partition);
                    }
                }
            }
            Op::Checkout { partitions, messages, auto } => self.checkout(partitions, messages, auto),
            Op::CheckoutOne { partition } => {
                let taken = self.bed.queue.checkout_partition(self.bed.ring, id(partition), now);
                self.flights.extend(taken.map(|checkout| flight(checkout, 10, false)));
            }
            Op::Claim { flight } if !self.flights.is_empty() => {
                let at = flight.index(self.flights.len());
                self.claim(at, deferral);
            }
            Op::Checkin { flight } if !self.flights.is_empty() => {
                let at = flight.index(self.flights.len());
                let flight = self.flights.swap_remove(at);
                let held: Vec<u128> =
                    flight.waiting.iter().copied().filter(|n| self.state(*n) == State::Inflight).collect();
                self.bed.queue.checkin(flight.checkout, now);
                return held;
            }
            Op::Lose { flight } if !self.flights.is_empty() => {
                let at = flight.index(self.flights.len());
                self.flights.swap_remove(at);
            }
            Op::Foreign { partition } => {
                self.truth(partition).claim(None, 3, false, deferral, now);
            }
            Op::Ack { partition, how, announced } => self.ack(partition, how, announced),
            Op::Pass { millis } => {
                self.bed.pass(millis);
            }
            Op::Tick => self.tick(),
            Op::Reseed { partition } if self.truth(partition).pending() => {
                self.bed.reseed(partition);
                self.excused.remove(&partition);
            }
            Op::Claim { .. } | Op::Checkin { .. } | Op::Lose { .. } | Op::Reseed { .. } => {}
        }
        Vec::new()
    }

    fn announce(&mut self, late: Late) {
        match late {
            Late::Mark(partition, messages) => {
                self.bed.mark(partition, messages);
            }
            Late::Release(partition, claim, release) => {
                self.bed.queue.released(self.bed.ring, id(partition), claim, release, self.bed.now);
            }
        }
    }

    fn checkout(&mut self, partitions: usize, messages: u64, auto: bool) {
        // Due entries come first; as a step of their own they make a set of their own.
        self.tick();
        self.follow(&[]);
        let count = |n: u128| u64::from(self.bed.entry(n).count);
        let counts: BTreeMap<u128, u64> =
            self.in_state(State::Ready).into_iter().map(|n| (n, count(n))).collect();
        let Some(checkout) = self.bed.queue.checkout(self.bed.ring, partitions, messages, self.bed.now)
        else {
            assert!(counts.is_empty(), "ready entries are handed out");
            return;
        };
        let taken = common::partitions(&checkout);
        assert!(taken.len() <= partitions.max(1));
        let before: u64 = taken[..taken.len() - 1].iter().map(|n| counts[n]).sum();
        assert!(taken.len() == 1 || before < messages, "the last one was still needed");
        let all: u64 = taken.iter().map(|n| counts[n]).sum();
        assert!(taken.len() == partitions.max(1) || taken.len() == counts.len() || all >= messages);
        for n in &taken {
            let first = self.order.front_mut().expect("ready entries are in order");
            assert!(first.remove(n), "{n} was handed out before its turn");
            if first.is_empty() {
                self.order.pop_front();
            }
        }
        self.flights.push(flight(checkout, messages, auto));
    }

    fn claim(&mut self, at: usize, deferral: Deferral) {
        let now = self.bed.now;
        let Flight { checkout, messages, auto, claimed, waiting } = &mut self.flights[at];
        if std::mem::replace(claimed, true) {
            return;
        }
        let mut budget = *messages as usize;
        let claim = checkout.claim();
        for n in common::partitions(checkout) {
            if budget == 0 {
                break;
            }
            let truth = self.truth.get_mut(&n).expect("every partition has its truth");
            let (verdict, took) = truth.claim(Some(claim), budget, *auto, deferral, now);
            budget -= took;
            if *auto {
                self.delivered += took;
            }
            assert!(checkout.note_partition(id(n), verdict));
            waiting.retain(|it| *it != n);
        }
    }

    fn ack(&mut self, partition: u128, how: How, announced: u8) {
        let now = self.bed.now;
        let truth = self.truth(partition);
        let Some(lease) = truth.lease.filter(|lease| lease.until > now) else { return };
        truth.lease = None;
        let mut delivered = 0;
        let release = match how {
            How::Covered => {
                delivered = lease.end - truth.committed;
                truth.committed = lease.end;
                Release::Covered
            }
            How::Nack => Release::Open,
            How::Retry(millis) => {
                truth.retry_at = Some(now.plus(ms(millis)));
                Release::Retry { rest: ms(millis) }
            }
        };
        self.delivered += delivered;
        let late = Late::Release(partition, lease.claim, release);
        if announced == 0 {
            self.announce(late);
        } else {
            self.late.push((announced, late));
        }
    }

    fn tick(&mut self) {
        self.bed.queue.tick(self.bed.now);
        for n in self.in_state(State::Wheel) {
            assert!(self.bed.entry(n).at > self.bed.now, "{n} is due and still parked");
        }
    }

    /// Keeps the order: what became ready goes to the end, what no claim looked at to the head.
    fn follow(&mut self, waiting: &[u128]) {
        let after = self.in_state(State::Ready);
        for set in &mut self.order {
            set.retain(|n| after.contains(n));
        }
        self.order.retain(|set| !set.is_empty());
        let listed: BTreeSet<u128> = self.order.iter().flatten().copied().collect();
        let mut fresh: BTreeSet<u128> = after.difference(&listed).copied().collect();
        let newly = fresh.len();
        let back: Vec<u128> = waiting.iter().copied().filter(|n| fresh.remove(n)).collect();
        for n in back.into_iter().rev() {
            self.order.push_front(BTreeSet::from([n]));
        }
        if !fresh.is_empty() {
            self.order.push_back(fresh);
        }
        assert!(self.bed.wakes() >= newly as u32, "nobody is woken for what became ready");
    }

    fn check(&self) {
        let stats = self.bed.queue.ring_stats(self.bed.ring).expect("the ring lives");
        let (ready, wheel) = (self.in_state(State::Ready), self.in_state(State::Wheel));
        assert_eq!((stats.ready, stats.wheel), (ready.len(), wheel.len()));
        assert_eq!(stats.inflight, self.in_state(State::Inflight).len());
        let sum: u64 = ready.iter().map(|n| u64::from(self.bed.entry(*n).count)).sum();
        assert_eq!(stats.ready_messages, sum);
        let first = wheel.iter().map(|n| self.bed.entry(*n).at).min();
        if let Some(at) = first {
            let due = self.bed.queue.next_due();
            assert!(due.is_some_and(|due| due <= at), "{due:?} is after {at:?}");
        }
        for (n, truth) in &self.truth {
            let announced_later = self.late.iter().any(|(_, late)| match late {
                Late::Mark(partition, _) | Late::Release(partition, _, _) => partition == n,
            });
            if truth.pending() && !self.excused.contains(n) && !announced_later {
                assert_ne!(self.state(*n), State::Idle, "{n} has work and is taken for idle: {truth:?}");
            }
        }
    }

    /// Lost pops are reclaimed and lost hints repaired by a walk; then everything is delivered in bounded time.
    fn drain(&mut self) {
        for (_, late) in std::mem::take(&mut self.late) {
            self.announce(late);
        }
        for flight in std::mem::take(&mut self.flights) {
            self.bed.queue.checkin(flight.checkout, self.bed.now);
        }
        for n in 1..=PARTITIONS {
            // A walk reports what is pending; what a lost pop holds back without that is let go by its deletion.
            if self.truth(n).pending() {
                self.bed.reseed(n);
            } else if self.state(n) == State::Inflight {
                self.bed.queue.forget_partition(id(n));
            }
        }
        self.excused.clear();
        self.check();
        let pushed: usize = self.truth.values().map(|truth| truth.messages.len()).sum();
        for _ in 0..2_000 {
            let deferral = self.bed.queue.deferral();
            while let Some(checkout) = self.bed.queue.checkout(self.bed.ring, 2, 50, self.bed.now) {
                self.flights.push(flight(checkout, 50, false));
                self.claim(0, deferral);
                let flight = self.flights.remove(0);
                self.bed.queue.checkin(flight.checkout, self.bed.now);
                for n in 1..=PARTITIONS {
                    self.ack(n, How::Covered, 0);
                }
                self.check();
            }
            match self.bed.queue.next_due() {
                Some(due) => self.bed.now = self.bed.now.max(due),
                None => break,
            }
            self.bed.queue.tick(self.bed.now);
        }
        assert!(self.bed.queue.is_idle(), "everything comes to rest");
        assert_eq!(self.delivered, pushed, "everything is delivered");
    }
}

fn flight(checkout: Checkout, messages: u64, auto: bool) -> Flight {
    let waiting = common::partitions(&checkout);
    Flight { checkout, messages, auto, claimed: false, waiting }
}

fn deferrals() -> impl Strategy<Value = Deferral> {
    prop_oneof![
        3 => Just(common::PLAIN),
        1 => (1u64..2_000).prop_map(common::delayed),
        1 => (1u64..2_000).prop_map(common::window),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_work_is_lost_and_every_entry_is_where_it_says(
        deferral in deferrals(),
        revisit in prop_oneof![Just(1_000u64), Just(600_000)],
        ops in prop::collection::vec(op(), 1..120),
    ) {
        let mut world = World::new(deferral, revisit);
        for op in &ops {
            world.step(op);
        }
        world.drain();
    }
}

#[test]
fn names_are_kept() {
    let mut bed = Bed::new(common::PLAIN);
    bed.mark(3, 1);
    let checkout = bed.take(1, 1);
    assert_eq!(checkout.candidates()[0].name, name(3));
    bed.end(checkout);
}
