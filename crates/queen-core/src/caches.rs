//! What the broker remembers of queues and groups. Short-lived, single flight, and never a failed look-up.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use queen_storage::admin::QueueRow;
use queen_storage::pop::Seed;
use queen_storage::{Storage, StorageError};
use queen_types::{Group, QueueId, QueueName, StartPoint, TenantId};

/// Entries above which a cache is emptied.
const ENTRIES_MAX: usize = 50_000;

type QueueKey = (TenantId, QueueName);
type GroupKey = (TenantId, QueueName, Group);
/// Whoever holds the lock loads; the others then find it loaded.
type Slot<T> = Arc<tokio::sync::Mutex<Option<(Instant, T)>>>;

pub(crate) struct Caches {
    ttl: Duration,
    queues: Mutex<HashMap<QueueKey, Slot<Arc<QueueRow>>>>,
    groups: Mutex<HashMap<GroupKey, Slot<(QueueId, Seed)>>>,
}

impl Caches {
    pub(crate) fn new(ttl: Duration) -> Self {
        Caches { ttl, queues: Mutex::default(), groups: Mutex::default() }
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
        let slot = slot(&self.groups, (tenant, queue.clone(), group.clone()));
        let mut held = slot.lock().await;
        if let Some((at, known)) = &*held
            && at.elapsed() < self.ttl
        {
            return Ok(*known);
        }
        let registration = storage.register(tenant, queue, group, start).await?;
        let known = (registration.queue, registration.seed);
        *held = Some((Instant::now(), known));
        Ok(known)
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
