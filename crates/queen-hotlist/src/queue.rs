use std::collections::HashMap;

use queen_types::{Group, PartitionId, PartitionName};

use crate::Millis;
use crate::checkout::{Checkout, ClaimId, Release, RingId, Verdict};
use crate::entry::EntryView;
use crate::intern::Partitions;
use crate::options::{Deferral, Options, Rules};
use crate::ring::Ring;
use crate::stats::{RingStats, Stats};

/// The hot list of one (tenant, queue). See the crate's documentation.
#[derive(Debug)]
pub struct HotQueue {
    rules: Rules,
    partitions: Partitions,
    pub(crate) rings: Rings,
    /// Numbers checkouts and lives of rings; never repeats.
    tickets: u64,
    /// Nothing parked is due before; may be too early.
    due: Millis,
    touched_at: Millis,
}

/// As many entries of a group became ready; as many of its parked pops have a reason to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wake {
    /// Whose.
    pub group: Group,
    /// How many, at least 1.
    pub entries: u32,
}

/// The rings of a queue. A slot is used again; the birth of a ring tells its lives apart.
#[derive(Debug, Default)]
pub(crate) struct Rings {
    slots: Vec<Option<Box<Ring>>>,
    by_group: HashMap<Group, u32>,
}

impl Rings {
    pub(crate) fn get(&self, id: RingId) -> Option<&Ring> {
        self.slots.get(id.slot as usize)?.as_deref().filter(|ring| ring.born == id.born)
    }

    pub(crate) fn get_mut(&mut self, id: RingId) -> Option<&mut Ring> {
        self.slots.get_mut(id.slot as usize)?.as_deref_mut().filter(|ring| ring.born == id.born)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (RingId, &Ring)> {
        self.slots.iter().enumerate().filter_map(|(slot, ring)| {
            let ring = ring.as_deref()?;
            Some((RingId { slot: slot as u32, born: ring.born }, ring))
        })
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Ring> {
        self.slots.iter_mut().filter_map(Option::as_deref_mut)
    }

    fn find(&self, group: &Group) -> Option<RingId> {
        let slot = *self.by_group.get(group)?;
        let ring = self.slots[slot as usize].as_ref()?;
        Some(RingId { slot, born: ring.born })
    }

    fn add(&mut self, ring: Ring) -> RingId {
        let slot = match self.slots.iter().position(Option::is_none) {
            Some(slot) => slot,
            None => {
                self.slots.push(None);
                self.slots.len() - 1
            }
        };
        let id = RingId { slot: slot as u32, born: ring.born };
        self.by_group.insert(ring.group.clone(), id.slot);
        self.slots[slot] = Some(Box::new(ring));
        id
    }

    fn remove(&mut self, group: &Group) -> bool {
        let Some(slot) = self.by_group.remove(group) else { return false };
        self.slots[slot as usize] = None;
        true
    }
}

impl HotQueue {
    /// An empty hot list. `seed` is any random number: it keeps the tickets of one hot list from meaning something in
    /// another.
    pub fn new(options: &Options, deferral: Deferral, seed: u64, now: Millis) -> HotQueue {
        HotQueue {
            rules: Rules::new(options, deferral),
            partitions: Partitions::default(),
            rings: Rings::default(),
            tickets: mix(seed),
            due: Millis::NEVER,
            touched_at: now,
        }
    }

    /// The queue's options as they are now. Where they hold back for less long than before, what is parked for
    /// visibility becomes ready; that costs a pass over all entries.
    pub fn set_deferral(&mut self, deferral: Deferral, now: Millis) {
        let before = std::mem::replace(&mut self.rules.deferral, deferral);
        if deferral.delayed < before.delayed || deferral.window < before.window {
            self.rings.iter_mut().for_each(|ring| ring.promote_deferred(now));
        }
    }

    /// The options that hold messages back, as last set.
    pub fn deferral(&self) -> Deferral {
        self.rules.deferral
    }

    // === rings ===

    /// The ring of a group, created if need be. Only a consumer calls this, and only once the group's seed marker
    /// exists. A new ring knows nothing and owes a full walk.
    pub fn ring(&mut self, group: &Group, now: Millis) -> RingId {
        self.touched_at = now;
        if let Some(id) = self.rings.find(group) {
            if let Some(ring) = self.rings.get_mut(id) {
                ring.served_at = now;
            }
            return id;
        }
        let born = self.ticket();
        self.rings.add(Ring::new(group.clone(), born, now))
    }

    /// The ring of a group, if a consumer has made one.
    pub fn find(&self, group: &Group) -> Option<RingId> {
        self.rings.find(group)
    }

    /// Whether this life of a ring goes on.
    pub fn has(&self, ring: RingId) -> bool {
        self.rings.get(ring).is_some()
    }

    /// Drops the ring of a group, as when the group is deleted. Its checkouts and walks come to nothing.
    pub fn drop_ring(&mut self, group: &Group) -> bool {
        let dropped = self.rings.remove(group);
        self.drop_partitions_without_rings();
        dropped
    }

    /// Drops the rings to which no consumer came since `before`, unless something is in flight or `keep` says so
    /// (pops are parked on it). Answers how many.
    pub fn trim(&mut self, before: Millis, mut keep: impl FnMut(&Group) -> bool) -> usize {
        let mut groups = Vec::new();
        for (_, ring) in self.rings.iter() {
            if ring.served_at < before && ring.counts().2 == 0 && !keep(&ring.group) {
                groups.push(ring.group.clone());
            }
        }
        for group in &groups {
            self.rings.remove(group);
        }
        self.drop_partitions_without_rings();
        groups.len()
    }

    /// Forgets everything, as when the queue is deleted. Checkouts and walks that are out come to nothing.
    pub fn clear(&mut self) {
        self.rings = Rings::default();
        self.drop_partitions_without_rings();
    }

    fn drop_partitions_without_rings(&mut self) {
        if self.rings.by_group.is_empty() {
            self.partitions = Partitions::default();
            self.rings = Rings::default();
            self.due = Millis::NEVER;
        }
    }

    // === events ===

    /// A commit landed `messages` in a partition: every ring learns of it. Without rings nothing is kept, since a
    /// new ring owes a full walk. A hint that does not know the number passes 1.
    pub fn mark(&mut self, partition: PartitionId, name: &PartitionName, messages: u32, now: Millis) {
        if self.rings.by_group.is_empty() {
            return;
        }
        self.touched_at = now;
        let Some(index) = self.partitions.intern(partition, name) else { return };
        for ring in self.rings.iter_mut() {
            ring.mark(index, messages, now, &self.rules);
            self.due = earlier(self.due, ring);
        }
    }

    /// Takes up to `partitions_max` (0 acts as 1) partitions that are ready, longest ready first, and stops early once
    /// what they are known to hold covers `messages`; at least one. `None` when nothing is ready, or the ring is gone.
    pub fn checkout(
        &mut self,
        ring: RingId,
        partitions_max: usize,
        messages: u64,
        now: Millis,
    ) -> Option<Checkout> {
        self.touched_at = now;
        let ticket = self.ticket();
        let found = self.rings.get_mut(ring)?;
        let candidates = found.checkout(ticket, partitions_max, messages, &self.partitions, now);
        (!candidates.is_empty()).then_some(Checkout { ring, ticket, candidates })
    }

    /// Takes one partition, ready or not, for a claim that names it: a pinned pop, or a claim in the commit of the ack
    /// that frees it ([`HotQueue::released`] is not called for that ack). `None` when it is unknown or in flight.
    pub fn checkout_partition(
        &mut self,
        ring: RingId,
        partition: PartitionId,
        now: Millis,
    ) -> Option<Checkout> {
        self.touched_at = now;
        let ticket = self.ticket();
        let index = self.partitions.find(partition)?;
        let candidate = self.rings.get_mut(ring)?.checkout_one(index, ticket, &self.partitions, now)?;
        Some(Checkout { ring, ticket, candidates: vec![candidate] })
    }

    /// Ends a checkout. Answers how many of its partitions were no longer its own: reclaimed by a reseed row,
    /// forgotten, or of a ring that is gone; their verdicts are ignored.
    ///
    /// Candidates without a verdict go back to the head of the ready list in their old order.
    pub fn checkin(&mut self, checkout: Checkout, now: Millis) -> usize {
        self.touched_at = now;
        let Checkout { ring, ticket, candidates } = checkout;
        let Some(found) = self.rings.get_mut(ring) else { return candidates.len() };
        let (waiting, judged): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|candidate| {
            matches!(candidate.verdict, Verdict::NotEvaluated | Verdict::Pending { .. })
        });
        let mut stale = 0;
        for candidate in judged.iter().chain(waiting.iter().rev()) {
            let known = self.partitions.is(candidate.index, candidate.partition);
            if known && found.holds(candidate.index, ticket) {
                found.settle(candidate, now, &self.rules);
            } else {
                stale += 1;
            }
        }
        self.due = earlier(self.due, found);
        stale
    }

    /// An ack ended the lease of a partition: that of `claim` ([`Checkout::claim`]), or of a lease that this broker did
    /// not give out by a checkout or no longer remembers (`None`, which costs an empty claim more). Called after the
    /// commit of the ack.
    ///
    /// False when the ring or the partition is unknown: whoever knows that something is left there, and the
    /// partition's name, may [`HotQueue::reseed_row`] it.
    pub fn released(
        &mut self,
        ring: RingId,
        partition: PartitionId,
        claim: Option<ClaimId>,
        release: Release,
        now: Millis,
    ) -> bool {
        self.touched_at = now;
        let Some(index) = self.partitions.find(partition) else { return false };
        let Some(found) = self.rings.get_mut(ring) else { return false };
        found.released(index, claim, release, now);
        self.due = earlier(self.due, found);
        true
    }

    /// Leaves a number with a partition, for its next checkout from this ring: the broker keeps there where the group's
    /// cursor lies. It means nothing to the list. False when the ring or the partition is unknown.
    pub fn set_tag(&mut self, ring: RingId, partition: PartitionId, tag: u64) -> bool {
        let Some(index) = self.partitions.find(partition) else { return false };
        self.rings.get_mut(ring).is_some_and(|ring| ring.set_tag(index, tag))
    }

    /// PostgreSQL says that a partition has something pending for the ring's group: a row of a walk, a repair marker,
    /// a hint after a seek. It also reclaims a partition whose checkout was lost. False when the ring is gone.
    pub fn reseed_row(
        &mut self,
        ring: RingId,
        partition: PartitionId,
        name: &PartitionName,
        now: Millis,
    ) -> bool {
        self.touched_at = now;
        let Some(found) = self.rings.get_mut(ring) else { return false };
        let Some(index) = self.partitions.intern(partition, name) else { return false };
        found.reseed_row(index, now, &self.rules);
        self.due = earlier(self.due, found);
        true
    }

    /// A walk has read how many messages are pending in a ready partition, so that a checkout takes no more partitions than
    /// it needs, and has a tag for it ([`HotQueue::set_tag`]; 0: none). Each is ignored where the list knows one already.
    pub fn estimate(&mut self, ring: RingId, partition: PartitionId, messages: u64, tag: u64) {
        if let Some(index) = self.partitions.find(partition)
            && let Some(ring) = self.rings.get_mut(ring)
        {
            ring.estimate(index, messages, tag);
        }
    }

    /// The partition was deleted. False when it was unknown.
    pub fn forget_partition(&mut self, partition: PartitionId) -> bool {
        let Some(index) = self.partitions.forget(partition) else { return false };
        self.rings.iter_mut().for_each(|ring| ring.forget(index));
        true
    }

    // === time and wakes ===

    /// Parked partitions whose time has come become ready. Answers how many.
    pub fn tick(&mut self, now: Millis) -> usize {
        if now < self.due {
            return 0;
        }
        let mut promoted = 0;
        self.due = Millis::NEVER;
        for ring in self.rings.iter_mut() {
            promoted += ring.promote_due(now) as usize;
            self.due = earlier(self.due, ring);
        }
        promoted
    }

    /// When [`HotQueue::tick`] is next worth calling; that may find nothing due and then moves the time on. `None`:
    /// nothing is parked, so nothing has to run.
    pub fn next_due(&self) -> Option<Millis> {
        (self.due != Millis::NEVER).then_some(self.due)
    }

    /// Adds to `wakes` what became ready since the last call. Whoever changes a hot list calls this before letting go
    /// of it, and wakes as many parked pops of each group afterwards.
    pub fn take_wakes(&mut self, wakes: &mut Vec<Wake>) {
        for ring in self.rings.iter_mut() {
            let entries = std::mem::take(&mut ring.woken);
            if entries > 0 {
                wakes.push(Wake { group: ring.group.clone(), entries });
            }
        }
    }

    // === looking ===

    /// Nothing is ready, parked or in flight in any ring: an idle sweep may drop the whole.
    pub fn is_idle(&self) -> bool {
        self.rings.iter().all(|(_, ring)| ring.counts() == (0, 0, 0))
    }

    /// The last event.
    pub fn touched_at(&self) -> Millis {
        self.touched_at
    }

    /// Sums over all rings.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats { partitions: self.partitions.len(), ..Stats::default() };
        self.rings.iter().for_each(|(_, ring)| stats.add(&RingStats::of(ring)));
        stats
    }

    /// Figures of one ring.
    pub fn ring_stats(&self, ring: RingId) -> Option<RingStats> {
        self.rings.get(ring).map(RingStats::of)
    }

    /// One entry, for diagnostics and tests. `None`: the ring or the partition is unknown.
    pub fn entry(&self, ring: RingId, partition: PartitionId) -> Option<EntryView> {
        let index = self.partitions.find(partition)?;
        self.rings.get(ring).map(|ring| ring.view(index, self.touched_at))
    }

    /// Bytes on the heap, text of names included, as if nobody shared it.
    pub fn memory_bytes(&self) -> usize {
        let rings: usize = self.rings.iter().map(|(_, ring)| size_of::<Ring>() + ring.memory_bytes()).sum();
        rings + self.partitions.memory_bytes()
    }

    pub(crate) fn ticket(&mut self) -> u64 {
        self.tickets = self.tickets.wrapping_add(1);
        self.tickets
    }
}

fn earlier(due: Millis, ring: &Ring) -> Millis {
    ring.next_due().map_or(due, |next| due.min(next))
}

/// Spreads the bits of a seed (the finalizer of splitmix64).
fn mix(seed: u64) -> u64 {
    let seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let seed = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let seed = (seed ^ seed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    seed ^ seed >> 31
}
