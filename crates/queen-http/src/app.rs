//! What all requests share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use queen_core::Broker;

use crate::options::HttpOptions;
use crate::stats::Stats;

/// A runtime that has not run the ticker for so long makes no progress.
const TICK_LIMIT: Duration = Duration::from_secs(10);

/// State of one HTTP edge.
pub(crate) struct App {
    pub(crate) broker: Broker,
    pub(crate) options: HttpOptions,
    pub(crate) stats: Stats,
    draining: AtomicBool,
    started: Instant,
    /// Milliseconds since `started` of the last tick; 0 while nothing ticks, as in a host's own server.
    ticked_ms: AtomicU64,
}

impl App {
    pub(crate) fn new(broker: Broker, options: HttpOptions) -> App {
        App {
            broker,
            options,
            stats: Stats::default(),
            draining: AtomicBool::new(false),
            started: Instant::now(),
            ticked_ms: AtomicU64::new(0),
        }
    }

    /// Health and readiness answer 503 from here on.
    pub(crate) fn set_draining(&self) {
        self.draining.store(true, Ordering::Release);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire) || self.broker.is_draining()
    }

    /// Notes that the runtime came around, and sees whether the broker's tasks did.
    pub(crate) fn tick(&self) {
        self.broker.watch_tasks();
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.ticked_ms.store(now.max(1), Ordering::Relaxed);
    }

    /// Whether the runtime came around lately and no background task was given up.
    pub(crate) fn is_alive(&self) -> bool {
        let ticked = self.ticked_ms.load(Ordering::Relaxed);
        let ticks =
            ticked == 0 || self.started.elapsed().saturating_sub(Duration::from_millis(ticked)) < TICK_LIMIT;
        ticks && self.broker.is_sound()
    }
}
