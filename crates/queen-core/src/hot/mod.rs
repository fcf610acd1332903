//! The hot lists of a broker: one per queue that a group has popped, each behind a mutex that is never held across a
//! wait, and the timer that looks after what is parked in them.
//!
//! What may be wrong in a hot list and what may not is said in [`queen_hotlist`]. Here is what feeds it: announcements of
//! commits ([`crate::announce`]), the outcomes of claims ([`Guard`]), and walks over the queue ([`walk`]).

mod guard;
pub(crate) mod timer;
pub(crate) mod walk;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use queen_hotlist::{Deferral, HotQueue, Millis, Options, RingId};
use queen_storage::pop::Pending;
use queen_types::{Group, QueueName, QueueOptions, TenantId};

use crate::wait::Gates;
pub(crate) use guard::Guard;
use timer::Timer;
use walk::Walks;

/// Enters what a look at the database found.
fn enter(list: &mut HotQueue, ring: RingId, found: &Pending, now: Millis) {
    list.reseed_row(ring, found.partition, &found.name, now);
    list.estimate(ring, found.partition, found.messages, found.cursor.to_u64());
}

type QueueKey = (TenantId, QueueName);

/// For what rounding and the path from the database's clock to ours may cost. Only spans travel, no instants, so the
/// clocks need not agree.
const PAD: Duration = Duration::from_millis(20);
/// Longest that a leased partition is left alone: every ack of this broker is announced, and what other brokers
/// acknowledged is found by the walks, so this is a third net.
const REVISIT_MAX: Duration = Duration::from_secs(30);

/// All hot lists of a broker.
pub(crate) struct HotLists {
    started: Instant,
    queues: Mutex<HashMap<QueueKey, Arc<Hot>>>,
    pub(crate) timer: Arc<Timer>,
    gates: Arc<Gates>,
}

/// The hot list of one queue.
pub(crate) struct Hot {
    pub(crate) tenant: TenantId,
    pub(crate) queue: QueueName,
    list: Mutex<HotQueue>,
    walks: Walks,
}

impl HotLists {
    pub(crate) fn new(gates: Arc<Gates>) -> Self {
        HotLists { started: Instant::now(), queues: Mutex::default(), timer: Arc::default(), gates }
    }

    pub(crate) fn now(&self) -> Millis {
        Millis(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// The hot list of a queue, if a pop has made one.
    pub(crate) fn get(&self, tenant: TenantId, queue: &QueueName) -> Option<Arc<Hot>> {
        self.queues.lock().get(&(tenant, queue.clone())).cloned()
    }

    /// The hot list of a queue and the ring of a group in it, made if need be, with the queue's options as they are.
    pub(crate) fn ring(
        &self,
        tenant: TenantId,
        queue: &QueueName,
        group: &Group,
        options: &QueueOptions,
    ) -> (Arc<Hot>, RingId) {
        let deferral = deferral(options);
        let now = self.now();
        let hot = self
            .queues
            .lock()
            .entry((tenant, queue.clone()))
            .or_insert_with(|| {
                let list = HotQueue::new(&list_options(), deferral, rand::random(), now);
                Arc::new(Hot {
                    tenant,
                    queue: queue.clone(),
                    list: Mutex::new(list),
                    walks: Walks::default(),
                })
            })
            .clone();
        let ring = self.change(&hot, |list| {
            if list.deferral() != deferral {
                list.set_deferral(deferral, now);
            }
            list.ring(group, now)
        });
        (hot, ring)
    }

    /// Changes a hot list. What became ready by it wakes as many parked pops, and what was parked is timed.
    pub(crate) fn change<T>(&self, hot: &Arc<Hot>, change: impl FnOnce(&mut HotQueue) -> T) -> T {
        let mut wakes = Vec::new();
        let (result, due) = {
            let mut list = hot.list.lock();
            let result = change(&mut list);
            list.take_wakes(&mut wakes);
            (result, list.next_due())
        };
        if let Some(due) = due {
            self.timer.look_at(due, hot);
        }
        for wake in wakes {
            let entries = usize::try_from(wake.entries).unwrap_or(usize::MAX);
            self.gates.claimable(hot.tenant, &hot.queue, &wake.group, entries);
        }
        result
    }

    /// The database was asked what a group could claim of a queue.
    pub(crate) fn found(&self, tenant: TenantId, queue: &QueueName, group: &Group, found: &[Pending]) {
        let Some(hot) = self.get(tenant, queue) else { return };
        let now = self.now();
        let ring = self.change(&hot, |list| {
            let ring = list.find(group)?;
            for found in found {
                enter(list, ring, found, now);
            }
            Some(ring)
        });
        if let Some(ring) = ring {
            hot.walks.seen(group, ring);
        }
    }

    /// Drops what is known of a queue, because it was deleted or its ids mean something else.
    pub(crate) fn forget(&self, tenant: TenantId, queue: &QueueName) {
        if let Some(hot) = self.queues.lock().remove(&(tenant, queue.clone())) {
            hot.list.lock().clear();
        }
    }

    /// Drops what is known of a group on a queue, because its cursors moved: its next pop makes a new ring and walks.
    pub(crate) fn forget_group(&self, tenant: TenantId, queue: &QueueName, group: &Group) {
        if let Some(hot) = self.get(tenant, queue) {
            hot.list.lock().drop_ring(group);
        }
    }

    /// Makes every ring of a queue walk again before a pop takes it for empty.
    pub(crate) fn distrust(&self, tenant: TenantId, queue: &QueueName) {
        if let Some(hot) = self.get(tenant, queue) {
            hot.walks.owe_all();
        }
    }

    /// Drops rings that no pop came to, and hot lists without work that nothing happened to, for as long.
    pub(crate) fn sweep(&self, idle: Duration) {
        let now = self.now();
        let before = Millis(now.0.saturating_sub(u64::try_from(idle.as_millis()).unwrap_or(u64::MAX)));
        let all: Vec<(QueueKey, Arc<Hot>)> =
            self.queues.lock().iter().map(|(key, hot)| (key.clone(), hot.clone())).collect();
        for (key, hot) in all {
            let unused = {
                let mut list = hot.list.lock();
                list.trim(before, |group| self.gates.is_waited_for(hot.tenant, &hot.queue, group));
                hot.walks.forget_all_but(|group| list.find(group).is_some());
                list.is_idle() && list.touched_at() < before
            };
            let parked = self.gates.is_waited_for_at_all(hot.tenant, &hot.queue);
            if unused && !parked {
                let mut queues = self.queues.lock();
                // Two: the map's and ours. Nobody is about to change it.
                if Arc::strong_count(&hot) == 2 {
                    queues.remove(&key);
                }
            }
        }
    }
}

fn deferral(options: &QueueOptions) -> Deferral {
    let seconds = |s: i32| Duration::from_secs(u64::try_from(s).unwrap_or(0));
    Deferral { delayed: seconds(options.delayed_processing), window: seconds(options.window_buffer) }
}

fn list_options() -> Options {
    Options {
        pad: PAD,
        revisit_max: REVISIT_MAX,
        window_batch: u32::try_from(queen_storage::pop::WINDOW_BATCH).unwrap_or(u32::MAX),
    }
}
