//! A synthetic database in virtual time, and clients that keep it busy through the arbiter.
//!
//! Transactions in flight share the processor, whose speed grows with their number up to `knee` and falls beyond it, as
//! they begin to wait for each other. A transaction that has executed joins the next flush, and one flush releases all
//! that joined it: a commit train.

use std::time::Duration;

use queen_admission::{Answer, Arbiter, Grant, Lane, Limits, Options, PerLane, PopSample, SlotId};
use queen_types::TenantId;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const FLUSH_MS: f64 = 0.3;
const TICK_MS: f64 = 500.0;
const FOREVER: Duration = Duration::from_secs(1 << 30);

/// What limits the database.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Curve {
    /// Transactions in flight at which it is fastest.
    pub(crate) knee: usize,
    /// Units of execution a millisecond at the knee.
    pub(crate) speed: f64,
    /// How much each transaction beyond the knee slows all down, as a part of what they take at the knee.
    pub(crate) contention: f64,
}

impl Curve {
    pub(crate) fn at(knee: usize) -> Curve {
        Curve { knee, speed: 0.5, contention: 0.15 }
    }

    fn speed(&self, in_flight: usize) -> f64 {
        let beyond = in_flight.saturating_sub(self.knee) as f64;
        let part = (in_flight as f64 / self.knee as f64).min(1.0);
        self.speed * part / (1.0 + self.contention * beyond)
    }
}

/// Who asks for slots.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Load {
    /// Clients that each begin a transaction of one unit as soon as the last one is done.
    Closed { clients: usize },
    /// As many producers of one message each; a commit takes all messages that wait, and costs a fixed part and a part
    /// for each message.
    Fused { producers: usize, commit: f64, message: f64 },
    /// Entries that become ready at a rate and are popped one by one.
    Rings { entries_per_s: f64 },
}

#[derive(Debug, Clone, Copy)]
struct Transaction {
    slot: SlotId,
    lane: Lane,
    work: u64,
    /// Execution left, in units.
    left: f64,
    executed_ms: f64,
}

pub(crate) struct Database {
    pub(crate) arbiter: Arbiter,
    pub(crate) curve: Curve,
    loads: PerLane<Option<Load>>,
    /// Messages that wait for a fused commit.
    gathered: u64,
    /// When each ready entry became so.
    ready: std::collections::VecDeque<f64>,
    next_entry_ms: f64,
    visits: u64,
    now_ms: f64,
    next_tick_ms: f64,
    has_ticks: bool,
    executing: Vec<Transaction>,
    joining: Vec<Transaction>,
    flushing: Vec<Transaction>,
    flush_ends_ms: f64,
    pub(crate) done: PerLane<u64>,
    /// Entries that were ready for more than 10 ms before they were popped.
    pub(crate) popped_late: u64,
    random: StdRng,
    noise: f64,
    hum: f64,
}

impl Database {
    pub(crate) fn new(limits: Limits, curve: Curve, noise: f64, seed: u64, has_ticks: bool) -> Database {
        Database {
            arbiter: Arbiter::new(limits, Duration::ZERO),
            curve,
            loads: PerLane::default(),
            gathered: 0,
            ready: std::collections::VecDeque::new(),
            next_entry_ms: 0.0,
            visits: 0,
            now_ms: 0.0,
            next_tick_ms: TICK_MS,
            has_ticks,
            executing: Vec::new(),
            joining: Vec::new(),
            flushing: Vec::new(),
            flush_ends_ms: f64::INFINITY,
            done: PerLane::default(),
            popped_late: 0,
            random: StdRng::seed_from_u64(seed),
            noise,
            hum: 1.0,
        }
    }

    pub(crate) fn load(&mut self, lane: Lane, load: Load) {
        self.loads[lane] = Some(load);
        match load {
            Load::Closed { clients } => (0..clients).for_each(|_| self.ask(lane)),
            Load::Fused { producers, .. } => {
                self.gathered = producers as u64;
                // One flusher more than can ever be admitted: somebody always waits while messages do.
                (0..64).for_each(|_| self.ask(lane));
            }
            Load::Rings { .. } => (),
        }
    }

    /// Runs for some time; answers the work done a second, over all lanes.
    pub(crate) fn run(&mut self, seconds: f64) -> f64 {
        let (end, before) = (self.now_ms + seconds * 1000.0, self.total());
        while self.now_ms < end {
            self.step();
        }
        (self.total() - before) as f64 / seconds
    }

    /// Runs as [`Database::run`], and answers the mean cap of a lane besides.
    pub(crate) fn run_with_cap(&mut self, seconds: usize, lane: Lane) -> (f64, f64) {
        let (mut rate, mut cap) = (0.0, 0.0);
        for _ in 0..seconds * 2 {
            rate += self.run(0.5);
            cap += self.cap(lane) as f64;
        }
        (rate / (seconds * 2) as f64, cap / (seconds * 2) as f64)
    }

    pub(crate) fn cap(&mut self, lane: Lane) -> usize {
        let now = self.now();
        self.arbiter.snapshot(now).lanes[lane].cap
    }

    fn total(&self) -> u64 {
        self.done.iter().map(|(_, done)| done).sum()
    }

    fn now(&self) -> Duration {
        Duration::from_nanos((self.now_ms * 1e6) as u64)
    }

    /// To the next thing that happens.
    fn step(&mut self) {
        let in_flight = self.executing.len() + self.joining.len() + self.flushing.len();
        let each = self.curve.speed(in_flight) * self.hum / self.executing.len().max(1) as f64;
        let shortest = self.executing.iter().map(|t| t.left).fold(f64::INFINITY, f64::min);
        let executed = self.now_ms + shortest / each;
        let entry = match self.loads.pop {
            Some(Load::Rings { .. }) => self.next_entry_ms,
            _ => f64::INFINITY,
        };
        let next = executed.min(self.flush_ends_ms).min(self.next_tick_ms).min(entry).max(self.now_ms);
        let spent = (next - self.now_ms) * each;
        self.now_ms = next;
        self.executing.iter_mut().for_each(|t| t.left -= spent);
        self.end_executions();
        if self.now_ms >= self.flush_ends_ms {
            self.end_flush();
        }
        if self.now_ms >= entry {
            self.entry_is_ready();
        }
        if self.now_ms >= self.next_tick_ms {
            self.tick();
        }
        if self.flush_ends_ms.is_infinite() && !self.joining.is_empty() {
            self.flushing = std::mem::take(&mut self.joining);
            self.flush_ends_ms = self.now_ms + FLUSH_MS;
        }
    }

    fn end_executions(&mut self) {
        let executed_ms = self.now_ms;
        let (done, running) = std::mem::take(&mut self.executing).into_iter().partition(|t| t.left <= 1e-9);
        self.executing = running;
        let done: Vec<Transaction> = done;
        self.joining.extend(done.into_iter().map(|transaction| Transaction { executed_ms, ..transaction }));
    }

    fn end_flush(&mut self) {
        self.flush_ends_ms = f64::INFINITY;
        for transaction in std::mem::take(&mut self.flushing) {
            let Transaction { slot, lane, work, executed_ms, .. } = transaction;
            let round_trip = Duration::from_nanos(((self.now_ms - executed_ms) * 1e6) as u64);
            let now = self.now();
            self.arbiter.committed(lane, now, round_trip, work);
            self.done[lane] += work;
            match self.loads[lane] {
                Some(Load::Fused { .. }) => self.gathered += work,
                Some(Load::Rings { .. }) => self.visits += work,
                _ => (),
            }
            let mut grants = Vec::new();
            self.arbiter.release(slot, now, &mut grants);
            self.begin_all(grants);
            match self.loads[lane] {
                Some(Load::Rings { .. }) => (),
                _ => self.ask(lane),
            }
        }
    }

    fn entry_is_ready(&mut self) {
        let Some(Load::Rings { entries_per_s }) = self.loads.pop else { return };
        self.ready.push_back(self.now_ms);
        self.next_entry_ms += 1000.0 / entries_per_s * self.random.random_range(0.0..2.0);
        self.ask(Lane::Pop);
    }

    fn tick(&mut self) {
        self.next_tick_ms += TICK_MS;
        self.hum = 1.0 + self.noise * self.random.random_range(-1.0..=1.0);
        if !self.has_ticks {
            return;
        }
        let sample = matches!(self.loads.pop, Some(Load::Rings { .. })).then(|| PopSample {
            oldest_ready: self
                .ready
                .front()
                .map_or(Duration::ZERO, |since| Duration::from_nanos(((self.now_ms - since) * 1e6) as u64)),
            ready: self.ready.len() as u64,
            visits: self.visits,
        });
        let mut grants = Vec::new();
        self.arbiter.tick(self.now(), sample, &mut grants);
        self.begin_all(grants);
    }

    fn ask(&mut self, lane: Lane) {
        if let Answer::Granted(slot) = self.arbiter.acquire(lane, TenantId::DEFAULT, self.now(), FOREVER) {
            self.begin(lane, slot);
        }
    }

    fn begin_all(&mut self, grants: Vec<Grant>) {
        grants.into_iter().for_each(|grant| self.begin(grant.lane, grant.slot));
    }

    fn begin(&mut self, lane: Lane, slot: SlotId) {
        let jitter = self.random.random_range(0.5..1.5);
        let (work, left) = match self.loads[lane] {
            Some(Load::Fused { commit, message, .. }) => {
                let work = std::mem::take(&mut self.gathered);
                (work, commit * jitter + message * work as f64)
            }
            Some(Load::Rings { .. }) => {
                let since = self.ready.pop_front().expect("a pop asks once for each entry");
                self.popped_late += u64::from(self.now_ms - since > 10.0);
                (1, jitter)
            }
            _ => (1, jitter),
        };
        self.executing.push(Transaction { slot, lane, work, left, executed_ms: 0.0 });
    }
}

/// The defaults, with lanes that start at `lane_init` if it is given.
pub(crate) fn limits(lane_init: Option<usize>) -> Limits {
    let (mut limits, _) = Options::default().limits();
    if let Some(slots) = lane_init {
        limits.lane_init = PerLane::from_fn(|_| slots);
    }
    limits
}
