//! What is known of one partition.

use std::collections::VecDeque;

use queen_types::{Offset, PartitionId};

use crate::generation::{Generation, Key};
use crate::{ALLOCATION, HASH_LEN};

/// Seconds that a generation is kept beyond the window, besides an eighth of the window: the two clocks differ, and a
/// generation dropped too early costs a look at PostgreSQL.
const GRACE: u32 = 30;

/// The hashes of `(from, head.upto]`, oldest generation first, the head last.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) partition: PartitionId,
    pub(crate) from: Offset,
    /// Full ones.
    #[expect(
        clippy::box_collection,
        reason = "most entries have none, and a pointer is 24 bytes less in each"
    )]
    sealed: Option<Box<VecDeque<Generation>>>,
    head: Generation,
    /// Deduplication window in seconds; 0 holds nothing.
    pub(crate) window: u32,
    /// Neighbours in the order of use; see `slab.rs`.
    pub(crate) newer: u32,
    pub(crate) older: u32,
    /// Seconds at which it was read from PostgreSQL or made.
    pub(crate) made: u32,
    /// Seconds at which somebody else was seen to write to the partition, 0 for never.
    pub(crate) overtaken: u32,
}

impl Entry {
    /// Knows nothing above `from`, and that there is nothing up to it.
    pub(crate) fn new(partition: PartitionId, from: Offset, window: u32, now: u32) -> Entry {
        Entry {
            partition,
            from,
            sealed: None,
            head: Generation::empty(from, now),
            window,
            newer: u32::MAX,
            older: u32::MAX,
            made: now,
            overtaken: 0,
        }
    }

    pub(crate) fn upto(&self) -> Offset {
        self.head.upto
    }

    /// Bytes on the heap.
    pub(crate) fn heap(&self) -> usize {
        let sealed = self
            .sealed
            .as_ref()
            .map_or(0, |sealed| sealed_bytes(sealed) + sealed.iter().map(Generation::heap).sum::<usize>());
        sealed + self.head.heap()
    }

    fn is_old(&self, generation: &Generation, now: u32) -> bool {
        let kept = self.window.saturating_add(self.window / 8).saturating_add(GRACE);
        generation.newest.saturating_add(kept) < now
    }

    /// Whether nothing it knows can be inside the window any more.
    pub(crate) fn is_spent(&self, now: u32) -> bool {
        self.is_old(&self.head, now)
    }

    /// Drops generations that the window has left behind; bytes that became free.
    pub(crate) fn expire(&mut self, now: u32) -> usize {
        let mut freed = 0;
        while let Some(oldest) = self.sealed.as_ref().and_then(|sealed| sealed.front())
            && self.is_old(oldest, now)
        {
            freed += self.drop_oldest();
        }
        freed
    }

    /// Drops the oldest full generation; bytes that became free, 0 when there is none.
    pub(crate) fn drop_oldest(&mut self) -> usize {
        let Some(sealed) = self.sealed.as_mut() else { return 0 };
        let Some(oldest) = sealed.pop_front() else { return 0 };
        self.from = oldest.upto;
        let before = sealed_bytes(sealed);
        if sealed.is_empty() {
            self.sealed = None;
            return oldest.heap() + before;
        }
        if sealed.capacity() > 4 * sealed.len() {
            sealed.shrink_to(2 * sealed.len());
        }
        oldest.heap() + before - sealed_bytes(sealed)
    }

    /// Adds hashes that follow on `upto`, stored at `stored`; bytes that were taken. A budget of a whole cache is never
    /// passed by more than this returns.
    pub(crate) fn append(&mut self, hashes: &[u8], stored: u32, now: u32, slots_max: usize) -> usize {
        let mut left = hashes.len() / HASH_LEN;
        let mut keys = Key::all(hashes);
        let mut taken = 0;
        while left > 0 {
            taken += self.make_room(left, stored, now, slots_max);
            let some = self.head.room().min(left);
            keys.by_ref().take(some).for_each(|key| self.head.insert(key));
            self.head.newest = self.head.newest.max(stored);
            left -= some;
        }
        taken
    }

    /// Has a head that can take something.
    fn make_room(&mut self, hashes: usize, stored: u32, now: u32, slots_max: usize) -> usize {
        let upto = self.head.upto;
        let before = self.head.heap();
        if self.head.slots() == 0 {
            self.head = Generation::sized(upto, stored, hashes, 0, slots_max);
            return self.head.heap();
        }
        // A table that fills slowly would keep its oldest hashes long after the window.
        let stale = !self.head.is_list()
            && self.head.len() > 0
            && now.saturating_sub(self.head.born) > (self.window / 2).max(60);
        if !stale && self.head.room() > 0 {
            return 0;
        }
        if !stale && self.head.grow_list(hashes.min(self.head.len())) {
            return self.head.heap() - before;
        }
        let slots = if stale { self.head.len() * 2 } else { self.head.slots() * 2 };
        let next = Generation::sized(upto, stored, hashes, slots, slots_max);
        let full = std::mem::replace(&mut self.head, next);
        self.head.heap() + self.seal(full, VecDeque::push_back)
    }

    fn seal(&mut self, full: Generation, push: fn(&mut VecDeque<Generation>, Generation)) -> usize {
        let before = self.sealed.as_ref().map_or(0, |sealed| sealed_bytes(sealed));
        let sealed = self.sealed.get_or_insert_default();
        if sealed.capacity() == sealed.len() {
            sealed.reserve_exact((sealed.len() / 2).max(1));
        }
        push(sealed, full);
        sealed_bytes(sealed) - before
    }

    /// Adds hashes that end at `from`, stored at `stored`; bytes that were taken.
    pub(crate) fn prepend(&mut self, hashes: &[u8], stored: u32, slots_max: usize) -> usize {
        let mut taken = 0;
        let mut rest = hashes;
        while !rest.is_empty() {
            let left = rest.len() / HASH_LEN;
            let mut generation = Generation::sized(self.from, stored, left, 0, slots_max);
            let some = generation.room().min(left);
            let (older, newest) = rest.split_at(rest.len() - some * HASH_LEN);
            generation.upto -= some as Offset;
            Key::all(newest).for_each(|key| generation.insert(key));
            rest = older;
            self.from -= some as Offset;
            taken += generation.heap();
            taken += self.seal(generation, VecDeque::push_front);
        }
        taken
    }

    /// Where one of the hashes may be stored, as `(above, upto]`.
    pub(crate) fn search(&self, hashes: &[u8]) -> Option<(Offset, Offset)> {
        let sealed = self.sealed.iter().flat_map(|sealed| sealed.iter());
        let found = sealed.chain([&self.head]).filter(|generation| generation.len() > 0);
        found
            .flat_map(|generation| Key::all(hashes).filter_map(|key| generation.find(key)))
            .reduce(|hull, found| (hull.0.min(found.0), hull.1.max(found.1)))
    }
}

/// Bytes of the list of full generations, without their slots.
fn sealed_bytes(sealed: &VecDeque<Generation>) -> usize {
    size_of::<VecDeque<Generation>>() + sealed.capacity() * size_of::<Generation>() + 2 * ALLOCATION
}
