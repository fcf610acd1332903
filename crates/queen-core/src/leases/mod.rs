//! What this broker remembers of the leases that it gave out: which partitions one covers, so that extending it needs no
//! search, and what was delivered under it, so that acking all of it needs no search either. Only a memory: the rows
//! decide.

mod keys;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use queen_hotlist::{ClaimId, RingId};
use queen_pg::Tid;
use queen_storage::Extended;
use queen_types::{Group, LeaseId, Offset, PartitionId, QueueName, TenantId};

pub(crate) use keys::KeySet;

use crate::api::PartitionBatch;

/// How long a lease is remembered after its end.
const GRACE: Duration = Duration::from_secs(10);
/// Bytes that a lease takes beside its partitions: its entries in three maps, and its id.
const LEASE_BYTES: usize = 350;

pub(crate) struct Leases {
    known: Mutex<Known>,
    bytes_max: usize,
    batches: bool,
    /// Serialises the searches for leases of other brokers, which walk every cursor.
    pub(crate) search: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    numbers: HashMap<LeaseId, u64>,
    /// By number, so the oldest first.
    held: BTreeMap<u64, Held>,
    ends: BTreeSet<(Instant, u64)>,
    next: u64,
    bytes: usize,
}

struct Held {
    lease: LeaseId,
    tenant: TenantId,
    group: Group,
    forget_at: Instant,
    /// Ascending by partition.
    parts: Vec<Part>,
    /// Parts that are not released.
    live: usize,
    /// What the hot list knows the claim by, if it came from there.
    claim: Option<(RingId, ClaimId)>,
}

struct Part {
    partition: PartitionId,
    state: State,
}

enum State {
    /// The lease covers the partition; the batch while an ack of all of it can be told.
    Covered(Option<Batch>),
    Released,
}

/// What a lease covers of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) queue: QueueName,
    /// Offset of its last message.
    pub(crate) end: Offset,
    /// Where the cursor lies.
    pub(crate) row: Tid,
    /// Its transaction ids.
    pub(crate) keys: KeySet,
}

impl Leases {
    /// A memory of about so many bytes; beyond them the oldest leases are forgotten. Without `batches` only the
    /// partitions are remembered.
    pub(crate) fn new(bytes_max: usize, batches: bool) -> Self {
        Leases { known: Mutex::default(), bytes_max, batches, search: tokio::sync::Mutex::default() }
    }

    /// Whether batches are remembered at all.
    pub(crate) fn has_batches(&self) -> bool {
        self.batches
    }

    /// What to remember of a delivery that ends at `end` with its cursor at `row`: nothing when batches are not
    /// remembered, when the row is not known, or when acking all of it does not complete it.
    pub(crate) fn remember(
        &self,
        queue: Option<&QueueName>,
        delivered: &PartitionBatch,
        end: Offset,
        row: Option<Tid>,
    ) -> Option<Batch> {
        let (true, Some(queue), Some(row)) = (self.batches, queue, row) else { return None };
        let keys = KeySet::of_batch(delivered.messages.iter().map(|(_, m)| &*m.transaction_id))?;
        Some(Batch { queue: queue.clone(), end, row, keys })
    }

    /// Remembers a lease of `lasts` from now: its partitions, each with its batch if all of it can be acked at once.
    pub(crate) fn put(
        &self,
        lease: LeaseId,
        tenant: TenantId,
        group: Group,
        parts: Vec<(PartitionId, Option<Batch>)>,
        lasts: Duration,
        claim: Option<(RingId, ClaimId)>,
    ) {
        let mut parts: Vec<Part> = parts
            .into_iter()
            .map(|(partition, batch)| Part { partition, state: State::Covered(batch) })
            .collect();
        parts.sort_unstable_by_key(|part| part.partition);
        let now = Instant::now();
        let held =
            Held { lease, tenant, group, forget_at: now + lasts + GRACE, live: parts.len(), parts, claim };
        let mut known = self.known.lock();
        known.forget_ended(now);
        known.add(held);
        while known.bytes > self.bytes_max && known.held.len() > 1 {
            known.forget_oldest();
        }
    }

    /// Partitions and group of a lease of the tenant.
    pub(crate) fn get(&self, tenant: TenantId, lease: &LeaseId) -> Option<(Vec<PartitionId>, Group)> {
        let known = self.known.lock();
        let held = known.find(lease).filter(|held| held.tenant == tenant)?;
        let covered = held.parts.iter().filter(|part| matches!(part.state, State::Covered(_)));
        Some((covered.map(|part| part.partition).collect(), held.group.clone()))
    }

    /// What a lease of the tenant and group covers of a partition, when it is known.
    pub(crate) fn batch(
        &self,
        tenant: TenantId,
        group: &Group,
        lease: &LeaseId,
        partition: PartitionId,
    ) -> Option<Batch> {
        let known = self.known.lock();
        let held = known.find(lease).filter(|held| held.tenant == tenant && held.group == *group)?;
        match &held.parts.get(held.position(partition)?)?.state {
            State::Covered(batch) => batch.clone(),
            State::Released => None,
        }
    }

    /// Notes an extension to `lasts` from now, which moved the cursors.
    pub(crate) fn extended(&self, lease: &LeaseId, lasts: Duration, extended: &[Extended]) {
        let mut known = self.known.lock();
        let known = &mut *known;
        let Some(number) = known.numbers.get(lease) else { return };
        let Some(held) = known.held.get_mut(number) else { return };
        let forget_at = held.forget_at.max(Instant::now() + lasts + GRACE);
        known.ends.remove(&(held.forget_at, *number));
        known.ends.insert((forget_at, *number));
        held.forget_at = forget_at;
        for moved in extended {
            if let Some(State::Covered(Some(batch))) = held.state(moved.partition) {
                batch.row = moved.row;
            }
        }
    }

    /// Notes that an ack changed the cursor, or did not find it as it was remembered: the batch is forgotten.
    pub(crate) fn changed(&self, lease: &LeaseId, partition: PartitionId) {
        let mut known = self.known.lock();
        if let Some(State::Covered(batch)) = known.find_mut(lease).and_then(|held| held.state(partition)) {
            *batch = None;
        }
    }

    /// Notes that the lease no longer covers a partition; tells what the hot list knows the claim by.
    pub(crate) fn released(&self, lease: &LeaseId, partition: PartitionId) -> Option<(RingId, ClaimId)> {
        let mut known = self.known.lock();
        let held = known.find_mut(lease)?;
        if let Some(state @ State::Covered(_)) = held.state(partition) {
            *state = State::Released;
            held.live -= 1;
        }
        let claim = held.claim;
        if held.live == 0 {
            known.forget(lease);
        }
        claim
    }
}

impl Held {
    fn bytes(&self) -> usize {
        LEASE_BYTES + self.parts.len() * size_of::<Part>()
    }

    fn position(&self, partition: PartitionId) -> Option<usize> {
        self.parts.binary_search_by_key(&partition, |part| part.partition).ok()
    }

    fn state(&mut self, partition: PartitionId) -> Option<&mut State> {
        let position = self.position(partition)?;
        self.parts.get_mut(position).map(|part| &mut part.state)
    }
}

impl Known {
    fn find(&self, lease: &LeaseId) -> Option<&Held> {
        self.held.get(self.numbers.get(lease)?)
    }

    fn find_mut(&mut self, lease: &LeaseId) -> Option<&mut Held> {
        self.held.get_mut(self.numbers.get(lease)?)
    }

    fn add(&mut self, held: Held) {
        let number = self.next;
        self.next += 1;
        self.bytes += held.bytes();
        self.numbers.insert(held.lease.clone(), number);
        self.ends.insert((held.forget_at, number));
        self.held.insert(number, held);
    }

    fn forget_ended(&mut self, now: Instant) {
        while let Some((_, number)) = self.ends.first().filter(|(end, _)| *end <= now).copied() {
            self.forget_number(number);
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(number) = self.held.first_key_value().map(|(number, _)| *number) {
            self.forget_number(number);
        }
    }

    fn forget(&mut self, lease: &LeaseId) {
        if let Some(number) = self.numbers.get(lease).copied() {
            self.forget_number(number);
        }
    }

    fn forget_number(&mut self, number: u64) {
        let Some(held) = self.held.remove(&number) else { return };
        self.numbers.remove(&held.lease);
        self.ends.remove(&(held.forget_at, number));
        self.bytes -= held.bytes();
    }
}

#[cfg(test)]
mod tests;
