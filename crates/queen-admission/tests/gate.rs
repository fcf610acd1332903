//! The gate under tasks: nothing is lost, whatever is dropped and whenever.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_util::FutureExt;
use queen_admission::{Clock, Gate, Lane, Limits, Options, PerLane, Refused, Slot};
use queen_types::{TenantId, Uuid};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const TENANT: TenantId = TenantId::DEFAULT;
const WAIT: Duration = Duration::from_secs(30);

/// A clock that moves when it is told to.
#[derive(Clone, Default)]
struct Hand(Arc<AtomicU64>);

impl Hand {
    fn clock(&self) -> Clock {
        let hand = self.clone();
        Arc::new(move || hand.now())
    }

    fn now(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::SeqCst))
    }

    fn forward(&self, by: Duration) -> Duration {
        self.0.fetch_add(by.as_micros() as u64, Ordering::SeqCst);
        self.now()
    }
}

fn limits(budget: usize, lane_cap: usize) -> Limits {
    let (mut limits, _) = Options::default().limits();
    (limits.min, limits.init, limits.ceiling) = (budget, budget, budget);
    limits.lane_floor = PerLane::from_fn(|_| 1);
    limits.lane_init = PerLane::from_fn(|_| lane_cap);
    limits
}

fn gate(budget: usize) -> (Gate, Hand) {
    let hand = Hand::default();
    (Gate::with_limits(limits(budget, budget), WAIT, hand.clock()), hand)
}

fn counts(gate: &Gate) -> (usize, usize) {
    let snapshot = gate.snapshot();
    let sum =
        |of: fn(&queen_admission::LaneSnapshot) -> usize| snapshot.lanes.iter().map(|(_, l)| of(l)).sum();
    (sum(|lane| lane.in_flight), sum(|lane| lane.waiting))
}

/// Polls a future once.
fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

#[test]
fn a_dropped_slot_goes_to_the_next_in_line() {
    let (gate, hand) = gate(1);
    let first = gate.acquire(Lane::Push, TENANT).now_or_never().unwrap().unwrap();
    let mut second = Box::pin(gate.acquire(Lane::Push, TENANT));
    assert!(poll(second.as_mut()).is_none());
    assert!(gate.try_acquire(Lane::Push).is_none(), "nobody overtakes");
    hand.forward(Duration::from_millis(7));
    drop(first);
    let slot = poll(second.as_mut()).unwrap().unwrap();
    assert_eq!((slot.lane(), slot.waited()), (Lane::Push, Duration::from_millis(7)));
    drop(slot);
    assert_eq!(counts(&gate), (0, 0));
}

#[test]
fn a_future_that_was_never_polled_is_not_in_line() {
    let (gate, _) = gate(1);
    let slot = gate.try_acquire(Lane::Push).unwrap();
    let never = gate.acquire(Lane::Push, TENANT);
    assert_eq!(counts(&gate), (1, 0));
    drop((never, slot));
    assert_eq!(counts(&gate), (0, 0));
}

#[test]
fn a_grant_to_a_vanished_waiter_is_offered_again() {
    let (gate, _) = gate(1);
    let slot = gate.try_acquire(Lane::Ack).unwrap();
    let mut vanishing = Box::pin(gate.acquire(Lane::Ack, TENANT));
    let mut patient = Box::pin(gate.acquire(Lane::Pop, TENANT));
    assert!(poll(vanishing.as_mut()).is_none() && poll(patient.as_mut()).is_none());
    drop(slot);
    assert_eq!(counts(&gate), (1, 1), "granted, and not yet taken");
    drop(vanishing);
    assert_eq!(poll(patient.as_mut()).unwrap().unwrap().lane(), Lane::Pop);
    assert_eq!(counts(&gate), (0, 0));
}

#[test]
fn a_wait_is_bounded() {
    let (gate, hand) = gate(1);
    let slot = gate.try_acquire(Lane::Pop).unwrap();
    let mut short = Box::pin(gate.acquire_within(Lane::Pop, TENANT, Duration::from_secs(2)));
    let mut long = Box::pin(gate.acquire(Lane::Pop, TENANT));
    assert!(poll(short.as_mut()).is_none() && poll(long.as_mut()).is_none());
    gate.tick(hand.forward(Duration::from_millis(1999)), None);
    assert!(poll(short.as_mut()).is_none());
    gate.tick(hand.forward(Duration::from_millis(500)), None);
    let waited = Duration::from_millis(2499);
    assert_eq!(poll(short.as_mut()).unwrap().unwrap_err(), Refused::Timeout { lane: Lane::Pop, waited });
    gate.tick(hand.forward(WAIT), None);
    let refused = poll(long.as_mut()).unwrap().unwrap_err();
    assert_eq!(refused.to_string(), "no pop slot within 32.499s");
    assert_eq!(counts(&gate), (1, 0));
    drop((slot, short, long));
    assert_eq!(counts(&gate), (0, 0));
}

#[test]
fn a_closed_gate_refuses_and_takes_slots_back() {
    let (gate, _) = gate(1);
    let slot = gate.try_acquire(Lane::Pop).unwrap();
    let mut waiting = Box::pin(gate.acquire(Lane::Pop, TENANT));
    assert!(poll(waiting.as_mut()).is_none());
    gate.close();
    assert_eq!(poll(waiting.as_mut()).unwrap().unwrap_err(), Refused::Closed);
    assert_eq!(gate.acquire(Lane::Pop, TENANT).now_or_never().unwrap().unwrap_err(), Refused::Closed);
    assert!(gate.try_acquire(Lane::Pop).is_none());
    drop(slot);
    assert_eq!(counts(&gate), (0, 0));
}

#[test]
fn a_raised_cap_wakes_who_waits_at_the_tick() {
    let hand = Hand::default();
    let gate = Gate::with_limits(limits(8, 2), WAIT, hand.clock());
    let slots = [gate.try_acquire(Lane::Push).unwrap(), gate.try_acquire(Lane::Push).unwrap()];
    let mut waiting = Box::pin(gate.acquire(Lane::Push, TENANT));
    assert!(poll(waiting.as_mut()).is_none());
    (0..8).for_each(|_| slots[0].committed(Duration::from_millis(1)));
    gate.tick(hand.forward(Duration::from_millis(500)), None);
    assert!(poll(waiting.as_mut()).unwrap().is_ok());
}

/// Counts wake-ups.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn whoever_ticks_sleeps_until_there_is_something_to_do() {
    let (gate, hand) = gate(2);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut busy = Box::pin(gate.busy());
    assert!(busy.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    hand.forward(Duration::from_secs(3600));
    let slots = [gate.try_acquire(Lane::Push), gate.try_acquire(Lane::Pop)];
    assert_eq!(woken.0.load(Ordering::SeqCst), 1, "rung once");
    assert!(busy.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
    assert!(gate.busy().now_or_never().is_some());
    drop(slots);
    assert!(!gate.tick(hand.forward(Duration::from_millis(500)), None).is_pending);
    let mut again = Box::pin(gate.busy());
    assert!(poll(again.as_mut()).is_none(), "a ring that was heard does not count twice");
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Waits once for a random number of polls, so that the scheduler may drop a task while it holds its slot.
struct Rest(u32);

impl Future for Rest {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let is_over = self.0 == 0;
        self.0 = self.0.saturating_sub(1);
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    }
}

async fn request(gate: Gate, lane: Lane, tenant: TenantId, rests: u32, done: Arc<AtomicUsize>) {
    let Ok(slot) = gate.acquire_within(lane, tenant, Duration::from_millis(200)).await else { return };
    Rest(rests).await;
    slot.committed(Duration::from_micros(400));
    Rest(1).await;
    drop(slot);
    done.fetch_add(1, Ordering::SeqCst);
}

///
#[test]
fn futures_dropped_at_every_await_leave_nothing_behind() {
    for seed in 0..300 {
        let mut random = StdRng::seed_from_u64(seed);
        let hand = Hand::default();
        let budget = random.random_range(1..8);
        let gate = Gate::with_limits(limits(budget, random.random_range(1..=budget)), WAIT, hand.clock());
        let done = Arc::new(AtomicUsize::new(0));
        let mut tasks: Vec<Task> = Vec::new();
        let mut started = 0;
        while started < 150 || !tasks.is_empty() {
            hand.forward(Duration::from_micros(random.random_range(0..500)));
            match random.random_range(0..100) {
                0..30 if started < 150 => {
                    let lane = Lane::ALL[random.random_range(0..4)];
                    let tenant = TenantId(Uuid::from_u128(random.random_range(0..3)));
                    let rests = random.random_range(0..4);
                    tasks.push(Box::pin(request(gate.clone(), lane, tenant, rests, Arc::clone(&done))));
                    started += 1;
                }
                0..90 if !tasks.is_empty() => {
                    let which = random.random_range(0..tasks.len());
                    if poll(tasks[which].as_mut()).is_some() {
                        drop(tasks.swap_remove(which));
                    }
                }
                90..97 if !tasks.is_empty() => {
                    let which = random.random_range(0..tasks.len());
                    drop(tasks.swap_remove(which));
                }
                _ => {
                    let now = hand.forward(Duration::from_millis(random.random_range(0..80)));
                    gate.tick(now, None);
                }
            }
            let (in_flight, waiting) = counts(&gate);
            assert!(in_flight <= budget && in_flight + waiting <= tasks.len(), "seed {seed}");
        }
        assert_eq!(counts(&gate), (0, 0), "seed {seed}");
        assert!(done.load(Ordering::SeqCst) > 0, "seed {seed}");
    }
}

/// Whoever is woken is polled, and nobody else: a lost wake-up leaves tasks behind.
#[test]
fn every_grant_wakes_the_one_it_is_for() {
    struct Queue(Mutex<VecDeque<usize>>);
    struct Ready(Arc<Queue>, usize);
    impl Wake for Ready {
        fn wake(self: Arc<Self>) {
            self.0.0.lock().unwrap().push_back(self.1);
        }
    }
    let (gate, _) = gate(3);
    let held: Vec<Slot> = (0..3).map(|_| gate.try_acquire(Lane::Ack).unwrap()).collect();
    let queue = Arc::new(Queue(Mutex::new((0..200).collect())));
    let mut tasks: Vec<Option<Task>> = (0..200)
        .map(|i| {
            let gate = gate.clone();
            let task: Task = Box::pin(async move {
                drop(gate.acquire(Lane::ALL[i % 4], TENANT).await.unwrap());
            });
            Some(task)
        })
        .collect();
    let mut held = Some(held);
    loop {
        let next = queue.0.lock().unwrap().pop_front();
        let Some(next) = next else {
            // Everybody waits; the first slots come back, and wake-ups carry the rest.
            match held.take() {
                Some(slots) => drop(slots),
                None => break,
            }
            continue;
        };
        let waker = Waker::from(Arc::new(Ready(Arc::clone(&queue), next)));
        if let Some(task) = &mut tasks[next]
            && task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
        {
            tasks[next] = None;
        }
    }
    assert_eq!(tasks.iter().flatten().count(), 0);
    assert_eq!(counts(&gate), (0, 0));
}

/// the metered part of a pool of 20 with a reserve of 4.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_requests_share_what_the_reserve_leaves() {
    let options =
        Options { pool_size: 20, pool_reserve: Some(4), min: Some(16), init: Some(16), ..Options::default() };
    let (mut limits, warnings) = options.limits();
    assert_eq!((limits.ceiling, warnings.len()), (16, 0));
    limits.lane_init = PerLane::from_fn(|_| 16);
    let hand = Hand::default();
    let gate = Gate::with_limits(limits, WAIT, hand.clock());
    let in_use = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..1000_usize)
        .map(|i| {
            let (gate, in_use, most) = (gate.clone(), Arc::clone(&in_use), Arc::clone(&most));
            tokio::spawn(async move {
                let asked = gate.acquire(Lane::ALL[i % 4], TenantId(Uuid::from_u128((i % 7) as u128)));
                // Some give up, at a moment that the other threads decide.
                let patience = if i % 5 == 0 { Duration::from_micros(i as u64) } else { WAIT };
                let Ok(slot) = tokio::time::timeout(patience, asked).await else { return false };
                let slot = slot.expect("nobody waits for 30 s");
                most.fetch_max(in_use.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                slot.committed(Duration::from_micros(300));
                in_use.fetch_sub(1, Ordering::SeqCst);
                true
            })
        })
        .collect();
    let mut served = 0;
    for task in tasks {
        served += usize::from(task.await.unwrap());
    }
    assert!(served >= 800, "{served}");
    assert!(most.load(Ordering::SeqCst) <= 16);
    assert_eq!(counts(&gate), (0, 0));
}

#[test]
fn the_futures_are_small_and_can_cross_threads() {
    fn check<T: Send>(value: T) -> usize {
        std::mem::size_of_val(&value)
    }
    let (gate, _) = gate(1);
    assert!(check(gate.acquire(Lane::Push, TENANT)) <= 256);
    assert!(check(gate.busy()) <= 128);
    fn both<T: Send + Sync>(_: &T) {}
    both(&gate);
    both(&gate.try_acquire(Lane::Push).unwrap());
}

/// A waker that drops a slot when it goes, as the last one of a task does when it takes the task along.
#[test]
fn a_waker_that_goes_may_take_a_slot_along() {
    struct Last(#[expect(dead_code, reason = "it is there to be dropped")] Mutex<Option<Slot>>);
    impl Wake for Last {
        fn wake(self: Arc<Self>) {}
    }
    let (gate, _) = gate(2);
    let waker = |slot| Waker::from(Arc::new(Last(Mutex::new(slot))));
    let held = gate.try_acquire(Lane::Push).unwrap();
    let taken = gate.try_acquire(Lane::Push);
    let mut waiting = Box::pin(gate.acquire(Lane::Push, TENANT));
    assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker(taken))).is_pending());
    assert!(poll(waiting.as_mut()).is_none(), "the first waker goes here");
    assert_eq!(counts(&gate), (2, 0), "and its slot is for the one who waits");
    let mut another = Box::pin(gate.acquire(Lane::Push, TENANT));
    assert!(another.as_mut().poll(&mut Context::from_waker(&waker(Some(held)))).is_pending());
    drop(another);
    drop(waiting);
    assert_eq!(counts(&gate), (0, 0));
}
