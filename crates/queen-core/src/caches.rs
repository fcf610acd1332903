//! What the broker remembers of queues and groups. Short-lived, single flight, and never a failed look-up.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use queen_storage::admin::QueueRow;
use queen_storage::pop::Seed;
use queen_storage::{Storage, StorageError};
use queen_types::{Group, QueueId, QueueName, StartPoint, TenantId};
use tokio::sync::Notify;

/// For how long a pop may rely on what was known before: longer than one waits between two looks.
const REMEMBERED: Duration = Duration::from_secs(600);
/// Entries above which a cache is emptied.
const ENTRIES_MAX: usize = 50_000;

type QueueKey = (TenantId, QueueName);
type GroupKey = (TenantId, QueueName, Group);
/// Whoever holds the lock loads; the others then find it loaded.
type Slot<T> = Arc<tokio::sync::Mutex<Option<(Instant, T)>>>;

pub(crate) struct Caches {
    ttl: Duration,
    queues: Mutex<HashMap<QueueKey, Slot<Arc<QueueRow>>>>,
    groups: Mutex<HashMap<GroupKey, Slot<Registered>>>,
    /// Somebody asked for a registration since the last look at what other brokers did.
    asked: AtomicBool,
    /// Another such look is called for.
    pub(crate) doubt: Notify,
}

/// A registration, as it was read.
#[derive(Debug, Clone, Copy)]
struct Registered {
    queue: QueueId,
    seed: Seed,
    /// Another broker deleted it, or moved its cursors.
    lapsed: bool,
}

impl Caches {
    pub(crate) fn new(ttl: Duration) -> Self {
        Caches {
            ttl,
            queues: Mutex::default(),
            groups: Mutex::default(),
            asked: AtomicBool::new(false),
            doubt: Notify::new(),
        }
    }

    /// The queue's row; `None` when there is no such queue, which is not remembered.
    pub(crate) async fn queue(
        &self,
        storage: &Storage,
        tenant: TenantId,
        queue: &QueueName,
    ) -> Result<Option<Arc<QueueRow>>, StorageError> {
        let slot = slot(&self.queues, (tenant, queue.clone()));
        let mut held = slot.lock().await;
        if let Some((at, row)) = &*held
            && at.elapsed() < self.ttl
        {
            return Ok(Some(row.clone()));
        }
        let row = queen_storage::admin::load_queue(storage.pool(), tenant, queue).await?.map(Arc::new);
        *held = row.clone().map(|row| (Instant::now(), row));
        Ok(row)
    }

    /// Registers the group at its first contact; afterwards tells from memory where it begins on new partitions.
    pub(crate) async fn registration(
        &self,
        storage: &Storage,
        tenant: TenantId,
        queue: &QueueName,
        group: &Group,
        start: StartPoint,
    ) -> Result<(QueueId, Seed), StorageError> {
        if !self.asked.load(Ordering::Relaxed) {
            // The first since the last look at what other brokers did: there will be another.
            self.asked.store(true, Ordering::Relaxed);
            self.doubt.notify_one();
        }
        let slot = slot(&self.groups, (tenant, queue.clone(), group.clone()));
        let mut held = slot.lock().await;
        let mut known = None;
        if let Some((at, registered)) = &*held {
            let age = at.elapsed();
            if age < self.ttl && !registered.lapsed {
                return Ok((registered.queue, registered.seed));
            }
            known = (age < REMEMBERED).then_some(age);
        }
        let registration = storage.register(tenant, queue, group, start, known).await?;
        if registration.first && known.is_some() {
            // It was deleted elsewhere. What else is known of it is void, too.
            self.doubt.notify_one();
        }
        let registered = Registered { queue: registration.queue, seed: registration.seed, lapsed: false };
        *held = Some((Instant::now(), registered));
        Ok((registered.queue, registered.seed))
    }

    /// What other brokers did is about to be read: whoever asks from here on may rely on what is older.
    pub(crate) fn reconciling(&self) {
        self.asked.store(false, Ordering::Relaxed);
    }

    /// Another broker deleted a group or moved its cursors: its registration is read again, and it is remembered that pops
    /// of this broker relied on it.
    pub(crate) fn lapse(&self, tenant: TenantId, queue: &QueueName, group: &Group) {
        let key = (tenant, queue.clone(), group.clone());
        let mut groups = self.groups.lock();
        // Whoever is loading may have read what was there before; its slot is nobody's from here on.
        let Some(slot) = groups.remove(&key) else { return };
        let Ok(held) = slot.try_lock() else { return };
        if let Some((at, registered)) = &*held {
            let lapsed = Registered { lapsed: true, ..*registered };
            groups.insert(key, Arc::new(tokio::sync::Mutex::new(Some((*at, lapsed)))));
        }
    }

    /// Drops everything about a queue, because it was changed or deleted.
    pub(crate) fn forget(&self, tenant: TenantId, queue: &QueueName) {
        self.queues.lock().remove(&(tenant, queue.clone()));
        self.groups.lock().retain(|(t, q, _), _| *t != tenant || q != queue);
    }

    /// Drops what is known of the registration of a group, on one queue or on all.
    pub(crate) fn forget_group(&self, tenant: TenantId, queue: Option<&QueueName>, group: &Group) {
        let named = |q: &QueueName| queue.is_none_or(|queue| queue == q);
        self.groups.lock().retain(|(t, q, g), _| *t != tenant || g != group || !named(q));
    }
}

fn slot<K: std::hash::Hash + Eq, T>(map: &Mutex<HashMap<K, Slot<T>>>, key: K) -> Slot<T> {
    let mut map = map.lock();
    if map.len() >= ENTRIES_MAX {
        map.clear();
    }
    map.entry(key).or_default().clone()
}
