//! The cache: entries under a budget.

use queen_types::{Offset, PartitionId};

use crate::HASH_LEN;
use crate::entry::Entry;
use crate::generation::SLOTS_MAX;
use crate::slab::Slab;

/// Least time between two readings of a partition because its entry reached less far back than its window.
const REREAD_PAUSE: u32 = 30;
/// How long a partition counts as shared after somebody else wrote to it.
const SHARED_FOR: u32 = 10;
/// Slots of the largest generation under a small budget.
const SLOTS_FEW: usize = 1024;
/// Entries at the end of the order of use that one call looks at for being spent.
const SPENT_PER_CALL: usize = 2;

/// Seconds since an instant of the caller's choosing, on a clock that never goes back. Start high enough that what was
/// stored before can be expressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tick(pub u32);

/// What is known of some hashes: none of them is stored in `(from, upto]`, except perhaps in `maybe`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coverage {
    /// The known stretch begins above this offset.
    pub from: Offset,
    /// The known stretch ends at this offset.
    pub upto: Offset,
    /// `(above, upto]`: here one of the hashes may be stored.
    pub maybe: Option<(Offset, Offset)>,
    /// Somebody else wrote to the partition a moment ago, so the log has probably grown beyond `upto`.
    pub shared: bool,
}

impl Coverage {
    /// Nothing is known.
    pub const NONE: Coverage = Coverage { from: -1, upto: -1, maybe: None, shared: false };
}

/// Hashes stored directly before a commit that the cache may not know.
#[derive(Debug, Clone, Copy)]
pub struct Before<'a> {
    /// They are all that is stored above this offset and before the commit.
    pub from: Offset,
    /// 16 bytes an offset, without a gap.
    pub hashes: &'a [u8],
}

/// A committed segment.
#[derive(Debug, Clone, Copy)]
pub struct Commit<'a> {
    /// Offset of its first message.
    pub base: Offset,
    /// 16 bytes a message.
    pub hashes: &'a [u8],
    /// What PostgreSQL said of the log before it.
    pub before: Option<Before<'a>>,
    /// The queue's deduplication window in seconds; 0: nothing is deduplicated.
    pub window: u32,
}

/// Hashes that were read back from the log.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// They are all that is stored above this offset, up to `upto`.
    pub from: Offset,
    /// The last offset of them. Of the first page: the end of the log.
    pub upto: Offset,
    /// 16 bytes an offset, without a gap.
    pub hashes: &'a [u8],
    /// Seconds since the newest of them was stored.
    pub age: u32,
    /// The queue's deduplication window in seconds.
    pub window: u32,
}

/// Counters and sizes for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Partitions with an entry.
    pub partitions: usize,
    /// Bytes in use, the spare room of every allocation included.
    pub bytes: usize,
    /// Generations and entries dropped for the budget since the start.
    pub evicted: u64,
}

/// See the [crate](crate).
#[derive(Debug)]
pub struct DedupCache {
    slab: Slab,
    budget: usize,
    /// Slots of a generation: few enough that several large ones fit the budget.
    slots_max: usize,
    /// Bytes that the entries hold on the heap.
    held: usize,
    evicted: u64,
}

impl DedupCache {
    /// An empty cache that keeps within `budget` bytes.
    pub fn new(budget: usize) -> DedupCache {
        let slots_max = (budget / (16 * size_of::<u32>())).clamp(SLOTS_FEW, SLOTS_MAX);
        DedupCache { slab: Slab::default(), budget, slots_max, held: 0, evicted: 0 }
    }

    /// Whether anything is known of the partition. If not, reading its window back before a push spares PostgreSQL the
    /// search while the partition is locked.
    pub fn knows(&self, partition: PartitionId) -> bool {
        self.slab.find(partition).is_some()
    }

    /// What is known of these hashes, 16 bytes each.
    pub fn ask(&mut self, partition: PartitionId, hashes: &[u8], now: Tick) -> Coverage {
        let Some(at) = self.slab.find(partition) else { return Coverage::NONE };
        self.slab.touch(at);
        let Some(entry) = self.slab.get_mut(at) else { return Coverage::NONE };
        self.held -= entry.expire(now.0);
        Coverage {
            // Without a window nothing is held; what is known is the end of the log.
            from: if entry.window == 0 { entry.upto() } else { entry.from },
            upto: entry.upto(),
            maybe: entry.search(hashes),
            shared: entry.overtaken > 0 && now.0 < entry.overtaken.saturating_add(SHARED_FOR),
        }
    }

    /// Takes in a segment that this broker committed. Not to be called for one whose commit is not certain.
    pub fn extend(&mut self, partition: PartitionId, commit: Commit<'_>, now: Tick) {
        let end = commit.base + (commit.hashes.len() / HASH_LEN) as Offset - 1;
        if commit.window == 0 {
            self.replace(Entry::new(partition, end, 0, now.0));
        } else if let Some(at) = self.entry_before(partition, &commit, now) {
            let entry = self.slab.get_mut(at);
            if let Some(entry) = entry.filter(|entry| entry.upto() == commit.base - 1) {
                entry.window = commit.window;
                self.held -= entry.expire(now.0);
                self.held += entry.append(commit.hashes, now.0, now.0, self.slots_max);
                self.slab.touch(at);
            } else if entry_end(&self.slab, at) < end {
                self.remove(at);
            }
        }
        self.tidy(now);
    }

    /// The entry of a partition, brought up to the commit where that is possible.
    fn entry_before(&mut self, partition: PartitionId, commit: &Commit<'_>, now: Tick) -> Option<u32> {
        let known = self.slab.find(partition).filter(|at| self.slab.get(*at).is_some_and(|e| e.window > 0));
        if let Some(at) = known
            && entry_end(&self.slab, at) >= commit.base - 1
        {
            return Some(at);
        }
        if commit.base == 0 {
            return Some(self.replace(Entry::new(partition, -1, commit.window, now.0)));
        }
        let before = commit.before.filter(|b| {
            b.from >= -1
                && b.from < commit.base
                && b.hashes.len() as Offset == (commit.base - 1 - b.from) * 16
        });
        let Some(before) = before else {
            self.forget(partition);
            return None;
        };
        let at = match known {
            Some(at) if before.from <= entry_end(&self.slab, at) => at,
            _ => self.replace(Entry::new(partition, before.from, commit.window, now.0)),
        };
        let entry = self.slab.get_mut(at)?;
        if known.is_some() {
            entry.overtaken = now.0;
        }
        let skipped = (entry.upto() - before.from) as usize * HASH_LEN;
        let missing = before.hashes.get(skipped..).unwrap_or_default();
        self.held += entry.append(missing, now.0, now.0, self.slots_max);
        Some(at)
    }

    /// Takes in what was read back: the newest part of a log, and then what precedes the part that is known. A page that
    /// fits neither is ignored; whether it was taken.
    pub fn fill(&mut self, partition: PartitionId, page: Page<'_>, now: Tick) -> bool {
        if page.from < -1 || page.hashes.len() as Offset != (page.upto - page.from) * 16 {
            return false;
        }
        let stored = now.0.saturating_sub(page.age);
        match self.slab.find(partition) {
            Some(at) => {
                let Some(entry) = self.slab.get_mut(at) else { return false };
                if entry.from != page.upto || entry.window == 0 {
                    return false;
                }
                self.held += entry.prepend(page.hashes, stored, self.slots_max);
            }
            None if page.window == 0 => {
                self.replace(Entry::new(partition, page.upto, 0, now.0));
            }
            None => {
                let at = self.replace(Entry::new(partition, page.upto, page.window, now.0));
                if let Some(entry) = self.slab.get_mut(at) {
                    self.held += entry.prepend(page.hashes, stored, self.slots_max);
                }
            }
        }
        self.tidy(now);
        true
    }

    /// PostgreSQL had to look below the known stretch: it found rows there that are still inside the window. Forgets
    /// the partition, so that it is read anew, unless that was done a moment ago or there is no room for more.
    pub fn fell_short(&mut self, partition: PartitionId, now: Tick) {
        let Some(at) = self.slab.find(partition) else { return };
        let made = self.slab.get(at).map_or(now.0, |entry| entry.made);
        if made.saturating_add(REREAD_PAUSE) <= now.0 && self.bytes() <= self.budget / 2 {
            self.remove(at);
        }
    }

    /// Drops what is known of a partition.
    pub fn forget(&mut self, partition: PartitionId) {
        if let Some(at) = self.slab.find(partition) {
            self.remove(at);
        }
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.slab = Slab::default();
        self.held = 0;
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        self.slab.heap() + self.held
    }

    /// Bytes it keeps within.
    pub fn budget(&self) -> usize {
        self.budget
    }

    /// Counters and sizes.
    pub fn stats(&self) -> Stats {
        Stats { partitions: self.slab.len(), bytes: self.bytes(), evicted: self.evicted }
    }

    /// An entry in place of the one that the partition may have.
    fn replace(&mut self, entry: Entry) -> u32 {
        self.forget(entry.partition);
        // Entries of others make room before there are more of them than the budget holds.
        while self.slab.is_full() && self.bytes() + Slab::chunk_bytes() > self.budget {
            let Some(oldest) = self.slab.oldest() else { break };
            self.evicted += 1;
            self.remove(oldest);
        }
        self.held += entry.heap();
        self.slab.insert(entry)
    }

    fn remove(&mut self, at: u32) {
        if let Some(entry) = self.slab.remove(at) {
            self.held -= entry.heap();
        }
    }

    /// Drops what is of no use any more, and the least recently used when there is too much.
    fn tidy(&mut self, now: Tick) {
        for _ in 0..SPENT_PER_CALL {
            let Some(at) = self.slab.oldest() else { break };
            if !self.slab.get(at).is_some_and(|entry| entry.is_spent(now.0)) {
                break;
            }
            self.remove(at);
        }
        while self.bytes() > self.budget {
            let Some(at) = self.slab.oldest() else { break };
            self.evicted += 1;
            match self.slab.get_mut(at).map_or(0, Entry::drop_oldest) {
                0 => self.remove(at),
                freed => self.held -= freed,
            }
        }
    }
}

fn entry_end(slab: &Slab, at: u32) -> Offset {
    slab.get(at).map_or(-1, Entry::upto)
}

#[cfg(test)]
mod tests;
