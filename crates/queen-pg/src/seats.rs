//! How many connections the pool may hold: as many as it was made for, or fewer while the server refuses more.
//!
//! A server at its `max_connections` refuses every further one with SQLSTATE 53300. What is open already works on, so
//! whoever is refused gives up its seat and waits for a connection like everybody behind a pool of that size. Every
//! few seconds more seats are tried, twice as many each time that went well.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

/// How long after a refusal, or after more seats were given, the next are tried.
const GROW_EVERY: Duration = Duration::from_secs(2);

/// The seats of one pool. Whoever holds or opens a connection sits on one.
pub(crate) struct Seats {
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
    began: Instant,
    law: Arc<Mutex<Law>>,
}

/// The right to hold a connection.
pub(crate) struct Seat {
    permit: Option<OwnedSemaphorePermit>,
    law: Arc<Mutex<Law>>,
}

/// What is decided, with the time as an argument.
#[derive(Debug, PartialEq, Eq)]
struct Law {
    /// Most seats.
    max: usize,
    /// Seats that exist, taken or not.
    limit: usize,
    /// Seats of `limit` that are taken and go when their holder does.
    surplus: usize,
    /// When the next are tried, and how many; `None` with all seats.
    grow: Option<(Duration, usize)>,
}

/// What a refusal means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused {
    /// Free seats to take away.
    take: usize,
    /// The server did not refuse before.
    pub(crate) news: bool,
    /// There is no connection to wait for.
    pub(crate) alone: bool,
}

impl Law {
    fn new(max: usize) -> Law {
        Law { max, limit: max, surplus: 0, grow: None }
    }

    /// The server refused a connection to somebody who sits. Of the `free` seats those stay behind which an idle
    /// connection waits, and the seat of who was refused goes, unless nobody else sits and nothing is idle.
    fn refused(&mut self, now: Duration, idle: usize, free: usize) -> Refused {
        let news = self.grow.is_none();
        self.grow = Some((now + GROW_EVERY, 1));
        let take = free.saturating_sub(idle);
        self.limit -= take;
        let alone = idle == 0 && self.limit - self.surplus <= 1;
        if !alone {
            self.surplus += 1;
        }
        Refused { take, news, alone }
    }

    /// Somebody waits for a seat. How many more there are now, and whether these are all again.
    fn wanted(&mut self, now: Duration) -> (usize, bool) {
        let Some((at, step)) = self.grow else { return (0, false) };
        if now < at {
            return (0, false);
        }
        let kept = step.min(self.surplus);
        self.surplus -= kept;
        let added = (step - kept).min(self.max - self.limit);
        self.limit += added;
        let all = self.limit == self.max && self.surplus == 0;
        self.grow = (!all).then_some((now + GROW_EVERY, step * 2));
        (added, all)
    }

    /// Whether a seat that is given back goes.
    fn goes(&mut self) -> bool {
        let goes = self.surplus > 0;
        if goes {
            self.surplus -= 1;
            self.limit -= 1;
        }
        goes
    }
}

impl Seats {
    pub(crate) fn new(max: usize) -> Seats {
        Seats {
            free: Arc::new(Semaphore::new(max)),
            waiting: AtomicUsize::new(0),
            began: Instant::now(),
            law: Arc::new(Mutex::new(Law::new(max))),
        }
    }

    /// A seat; `None` when there was none for `patience`, or after [`Seats::close`].
    pub(crate) async fn take(&self, patience: Duration) -> Option<Seat> {
        let permit = match Arc::clone(&self.free).try_acquire_owned() {
            Ok(permit) => permit,
            Err(TryAcquireError::Closed) => return None,
            Err(TryAcquireError::NoPermits) => {
                let (added, all) = self.with(|law| law.wanted(self.began.elapsed()));
                self.free.add_permits(added);
                if all {
                    tracing::info!("the server takes as many connections again as the pool may hold");
                }
                let _waiting = Waiting::new(&self.waiting);
                tokio::time::timeout(patience, Arc::clone(&self.free).acquire_owned()).await.ok()?.ok()?
            }
        };
        Some(Seat { permit: Some(permit), law: Arc::clone(&self.law) })
    }

    /// The server refused a connection, for want of room, to somebody who sits, while `idle` connections were free.
    pub(crate) fn refused(&self, idle: usize) -> Refused {
        self.with(|law| {
            let refused = law.refused(self.began.elapsed(), idle, self.free.available_permits());
            // Somebody may have sat down meanwhile: such a seat goes later.
            let missed = refused.take - self.free.forget_permits(refused.take);
            law.surplus += missed;
            law.limit += missed;
            refused
        })
    }

    /// How many connections the pool may hold.
    pub(crate) fn limit(&self) -> usize {
        self.with(|law| law.limit - law.surplus)
    }

    /// Callers that wait for a seat.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Whoever waits, and whoever comes, gets none.
    pub(crate) fn close(&self) {
        self.free.close();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.free.is_closed()
    }

    fn with<T>(&self, change: impl FnOnce(&mut Law) -> T) -> T {
        change(&mut self.law.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        if self.law.lock().unwrap_or_else(PoisonError::into_inner).goes() {
            permit.forget();
        }
    }
}

/// Counts a caller as waiting while it lives.
struct Waiting<'w>(&'w AtomicUsize);

impl Waiting<'_> {
    fn new(count: &AtomicUsize) -> Waiting<'_> {
        count.fetch_add(1, Ordering::Relaxed);
        Waiting(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    fn refused(take: usize, news: bool, alone: bool) -> Refused {
        Refused { take, news, alone }
    }

    #[test]
    fn a_refusal_takes_the_seat_of_who_was_refused_and_those_that_are_free() {
        let mut law = Law::new(16);
        // Nine sit, three of whom are about to be refused, and nothing is idle.
        assert_eq!(law.refused(s(0), 0, 7), refused(7, true, false));
        assert_eq!((law.limit, law.surplus), (9, 1));
        assert!(law.goes());
        for _ in 0..2 {
            assert_eq!(law.refused(s(0), 0, 0), refused(0, false, false));
            assert!(law.goes());
        }
        assert!(!law.goes(), "the others stay");
        assert_eq!((law.limit, law.surplus), (6, 0));
    }

    #[test]
    fn a_seat_stays_for_each_idle_connection() {
        let mut law = Law::new(8);
        assert_eq!(law.refused(s(0), 2, 7), refused(5, true, false));
        assert!(law.goes());
        assert_eq!((law.limit, law.surplus), (2, 0));
    }

    #[test]
    fn one_seat_always_stays() {
        let mut law = Law::new(4);
        assert_eq!(law.refused(s(0), 0, 3), refused(3, true, true));
        assert_eq!((law.limit, law.surplus), (1, 0));
        assert_eq!(law.refused(s(1), 0, 0), refused(0, false, true));
    }

    #[test]
    fn seats_come_back_in_steps_that_double() {
        let mut law = Law::new(8);
        law.refused(s(0), 0, 5);
        assert!(law.goes());
        assert_eq!((law.limit, law.surplus), (2, 0));
        assert_eq!(law.wanted(s(1)), (0, false));
        assert_eq!(law.wanted(s(2)), (1, false));
        assert_eq!(law.wanted(s(3)), (0, false));
        assert_eq!(law.wanted(s(4)), (2, false));
        assert_eq!(law.wanted(s(6)), (3, true));
        assert_eq!(law, Law::new(8));
    }

    #[test]
    fn a_refusal_on_the_way_back_starts_over() {
        let mut law = Law::new(8);
        law.refused(s(0), 0, 5);
        assert!(law.goes());
        assert_eq!(law.wanted(s(2)).0, 1);
        assert_eq!(law.refused(s(3), 0, 0), refused(0, false, false), "it is not news");
        assert_eq!((law.limit, law.surplus), (3, 1));
        assert_eq!(law.wanted(s(4)), (0, false));
        assert_eq!(law.wanted(s(5)), (0, false), "the seat that was about to go stays");
        assert_eq!((law.limit, law.surplus), (3, 0));
    }

    #[tokio::test]
    async fn the_seat_of_who_was_refused_goes_with_it() {
        let seats = Seats::new(3);
        let now = Duration::ZERO;
        let (a, b) = (seats.take(now).await, seats.take(now).await);
        assert!(a.is_some() && b.is_some());
        assert_eq!(seats.refused(0), refused(1, true, false));
        assert_eq!(seats.limit(), 1);
        assert!(seats.take(now).await.is_none());
        drop(a);
        assert!(seats.take(now).await.is_none(), "that seat is gone");
        drop(b);
        assert!(seats.take(now).await.is_some());
    }
}
