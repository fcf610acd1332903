//! The arbiter for tasks: slots that are waited for, and that come back by themselves.
//!
//! The one asynchronous file. It has no timer: the owner calls [`Gate::tick`] while [`Gate::busy`] says that there is
//! something to do, and waits that took too long end at a tick.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use queen_types::TenantId;
use tokio::sync::Notify;

use crate::arbiter::{Answer, Arbiter, Grant, Ticked};
use crate::lane::{Lane, PerLane};
use crate::metrics::Snapshot;
use crate::options::{Limits, Options, Warning};
use crate::slots::SlotId;
use crate::verdict::PopSample;
use crate::waiters::WaiterId;

/// Reads the time, as a duration since one start that never changes. Called once for every event.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// The door to write transactions. A clone is the same door.
#[derive(Clone)]
pub struct Gate {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Clock,
    wait: Duration,
    state: Mutex<State>,
    /// Rung once for [`Gate::busy`] when the first thing to do arrives.
    bell: Notify,
}

struct State {
    arbiter: Arbiter,
    /// Everybody whose future lives and has not taken its answer.
    tickets: HashMap<WaiterId, Turn>,
    /// Somebody listens to the bell.
    has_listener: bool,
    is_closed: bool,
    /// Kept for its memory; empty between events.
    grants: Vec<Grant>,
}

/// Where a waiting future stands.
enum Turn {
    Waiting(Option<Waker>),
    Granted { slot: SlotId, waited: Duration },
    Refused(Refused),
}

/// No slot was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// None became free in time. The caller answers that it is overloaded, and when to try again.
    #[error("no {lane} slot within {waited:?}")]
    Timeout {
        /// The lane that was asked.
        lane: Lane,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The gate is closed: the broker shuts down.
    #[error("the broker shuts down")]
    Closed,
}

impl Gate {
    /// A gate with what is in force for these options, and what had to be changed in them. `clock` must not call the
    /// gate.
    pub fn new(options: &Options, clock: Clock) -> (Gate, Vec<Warning>) {
        let (limits, warnings) = options.limits();
        (Gate::with_limits(limits, options.wait, clock), warnings)
    }

    /// A gate with these limits, whose waits take at most `wait` unless the caller names another.
    pub fn with_limits(limits: Limits, wait: Duration, clock: Clock) -> Gate {
        let state = State {
            arbiter: Arbiter::new(limits, clock()),
            tickets: HashMap::new(),
            has_listener: false,
            is_closed: false,
            grants: Vec::new(),
        };
        Gate { shared: Arc::new(Shared { clock, wait, state: Mutex::new(state), bell: Notify::new() }) }
    }

    /// Waits for a slot, at most as long as the options say.
    ///
    /// Take the slot first and the connection then; the reverse can deadlock.
    ///
    /// # Errors
    ///
    /// [`Refused::Timeout`], at the first tick after the wait has become too long; [`Refused::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point leaves the line, and gives a slot that was granted meanwhile to the next.
    pub async fn acquire(&self, lane: Lane, tenant: TenantId) -> Result<Slot, Refused> {
        self.acquire_within(lane, tenant, self.shared.wait).await
    }

    /// As [`Gate::acquire`], but waits no longer than `wait`: for callers with a deadline of their own.
    ///
    /// # Errors
    ///
    /// As [`Gate::acquire`].
    ///
    /// # Cancel safety
    ///
    /// As [`Gate::acquire`].
    pub async fn acquire_within(
        &self,
        lane: Lane,
        tenant: TenantId,
        wait: Duration,
    ) -> Result<Slot, Refused> {
        let mut ticket = match self.enter(lane, tenant, wait)? {
            Entered::Slot(slot) => return Ok(slot),
            Entered::Line(ticket) => ticket,
        };
        poll_fn(|context| ticket.poll(context)).await
    }

    /// A slot that is free at once, or none; nothing waits afterwards.
    pub fn try_acquire(&self, lane: Lane) -> Option<Slot> {
        let now = (self.shared.clock)();
        let mut state = self.shared.state.lock();
        if state.is_closed {
            return None;
        }
        let id = state.arbiter.try_acquire(lane, now);
        let rings = state.rings_bell();
        drop(state);
        self.shared.ring_if(rings);
        id.map(|id| self.slot(id, lane, Duration::ZERO))
    }

    /// Adapts the budget and the caps, refuses whoever waited too long, and wakes those who can go. `pop` is what the
    /// rings of ready partitions show, if there are any.
    ///
    /// To be called every [`Options::tick`] while the answer's `is_pending` is true; then [`Gate::busy`] tells when to
    /// begin again.
    pub fn tick(&self, now: Duration, pop: Option<PopSample>) -> Ticked {
        let mut state = self.shared.state.lock();
        let mut grants = std::mem::take(&mut state.grants);
        let ticked = state.arbiter.tick(now, pop, &mut grants);
        let mut woken = state.settle(grants);
        for expired in &ticked.expired {
            let refused = Refused::Timeout { lane: expired.lane, waited: expired.waited };
            woken.extend(state.answer(expired.waiter, Turn::Refused(refused)));
        }
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        ticked
    }

    /// Waits until a tick has something to do; at once if it has. Meant for the one task that ticks.
    ///
    /// # Cancel safety
    ///
    /// Safe: a later call looks again.
    pub async fn busy(&self) {
        while !self.listen() {
            self.shared.bell.notified().await;
        }
    }

    /// Whether a tick has something to do.
    pub fn is_pending(&self) -> bool {
        self.shared.state.lock().arbiter.is_pending()
    }

    /// Refuses everybody who waits and everybody who comes. Slots that are held stay so until they are dropped.
    pub fn close(&self) {
        let mut state = self.shared.state.lock();
        state.is_closed = true;
        let waiting = state.arbiter.refuse_all();
        let woken: Vec<Waker> =
            waiting.into_iter().filter_map(|id| state.answer(id, Turn::Refused(Refused::Closed))).collect();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// What the metrics show.
    pub fn snapshot(&self) -> Snapshot {
        let now = (self.shared.clock)();
        self.shared.state.lock().arbiter.snapshot(now)
    }

    /// The most requests that waited at once in each lane since the last call.
    pub fn take_waiting_peaks(&self) -> PerLane<usize> {
        self.shared.state.lock().arbiter.take_waiting_peaks()
    }

    fn enter(&self, lane: Lane, tenant: TenantId, wait: Duration) -> Result<Entered, Refused> {
        let now = (self.shared.clock)();
        let mut state = self.shared.state.lock();
        if state.is_closed {
            return Err(Refused::Closed);
        }
        let answer = state.arbiter.acquire(lane, tenant, now, now.saturating_add(wait));
        if let Answer::Waiting(id) = answer {
            state.tickets.insert(id, Turn::Waiting(None));
        }
        let rings = state.rings_bell();
        drop(state);
        self.shared.ring_if(rings);
        Ok(match answer {
            Answer::Granted(id) => Entered::Slot(self.slot(id, lane, Duration::ZERO)),
            Answer::Waiting(id) => Entered::Line(Ticket { gate: self.clone(), id, lane, tenant }),
        })
    }

    fn slot(&self, id: SlotId, lane: Lane, waited: Duration) -> Slot {
        Slot { shared: Arc::clone(&self.shared), id, lane, waited }
    }

    /// Says whether something is pending; if not, the bell will ring when it is.
    fn listen(&self) -> bool {
        let mut state = self.shared.state.lock();
        let is_pending = state.arbiter.is_pending();
        state.has_listener = !is_pending;
        is_pending
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

enum Entered {
    Slot(Slot),
    Line(Ticket),
}

impl Shared {
    fn ring_if(&self, rings: bool) {
        if rings {
            self.bell.notify_one();
        }
    }

    fn release(&self, id: SlotId) {
        let now = (self.clock)();
        let mut state = self.state.lock();
        let woken = state.release(id, now);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl State {
    fn release(&mut self, id: SlotId, now: Duration) -> Vec<Waker> {
        let mut grants = std::mem::take(&mut self.grants);
        self.arbiter.release(id, now, &mut grants);
        self.settle(grants)
    }

    /// Hands out the grants; whom to wake once the lock is released.
    fn settle(&mut self, mut grants: Vec<Grant>) -> Vec<Waker> {
        let mut woken = Vec::new();
        for Grant { waiter, slot, waited, .. } in grants.drain(..) {
            woken.extend(self.answer(waiter, Turn::Granted { slot, waited }));
        }
        self.grants = grants;
        woken
    }

    /// Leaves the answer for a waiting future. Whoever waits in the arbiter has a ticket: both are made and removed
    /// under one lock.
    fn answer(&mut self, waiter: WaiterId, answer: Turn) -> Option<Waker> {
        let turn = self.tickets.get_mut(&waiter)?;
        match std::mem::replace(turn, answer) {
            Turn::Waiting(waker) => waker,
            Turn::Granted { .. } | Turn::Refused(_) => None,
        }
    }

    /// True once for each listener.
    fn rings_bell(&mut self) -> bool {
        std::mem::take(&mut self.has_listener)
    }
}

/// A place in the line.
struct Ticket {
    gate: Gate,
    id: WaiterId,
    lane: Lane,
    tenant: TenantId,
}

impl Ticket {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Slot, Refused>> {
        // Wakers are cloned and dropped outside the lock: the last one of a task may drop a slot that the task holds.
        let waker = context.waker().clone();
        let mut state = self.gate.shared.state.lock();
        if let Some(Turn::Waiting(known)) = state.tickets.get_mut(&self.id) {
            let known = known.replace(waker);
            drop(state);
            drop(known);
            return Poll::Pending;
        }
        let turn = state.tickets.remove(&self.id);
        drop(state);
        Poll::Ready(match turn {
            Some(Turn::Granted { slot, waited }) => Ok(self.gate.slot(slot, self.lane, waited)),
            Some(Turn::Refused(refused)) => Err(refused),
            // A ticket is polled no more after its answer, and nobody else removes it.
            Some(Turn::Waiting(_)) | None => Err(Refused::Closed),
        })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let shared = &self.gate.shared;
        let mut state = shared.state.lock();
        let turn = state.tickets.remove(&self.id);
        let woken = match &turn {
            Some(Turn::Waiting(_)) => {
                state.arbiter.cancel(self.lane, self.tenant, self.id);
                Vec::new()
            }
            Some(Turn::Granted { slot, .. }) => {
                let now = (shared.clock)();
                state.release(*slot, now)
            }
            Some(Turn::Refused(_)) | None => Vec::new(),
        };
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }
}

/// The right to have one write transaction open. Given back when it is dropped, whatever happened.
#[must_use = "a slot that is dropped is given back"]
pub struct Slot {
    shared: Arc<Shared>,
    id: SlotId,
    lane: Lane,
    waited: Duration,
}

impl Slot {
    /// The lane it belongs to.
    pub fn lane(&self) -> Lane {
        self.lane
    }

    /// How long it was waited for.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Reports a commit whose round trip, that of the statement that committed and nothing before it, has just ended.
    /// Not to be called for what failed or found nothing to do.
    pub fn committed(&self, round_trip: Duration) {
        self.committed_work(round_trip, 1);
    }

    /// As [`Slot::committed`], for a commit that carried `work` units. A lane counts in one unit throughout: messages,
    /// where commits are fused, since only then does a probe see that fuller commits are better than more of them.
    pub fn committed_work(&self, round_trip: Duration, work: u64) {
        let now = (self.shared.clock)();
        self.shared.state.lock().arbiter.committed(self.lane, now, round_trip, work);
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("lane", &self.lane).field("waited", &self.waited).finish_non_exhaustive()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.shared.release(self.id);
    }
}
