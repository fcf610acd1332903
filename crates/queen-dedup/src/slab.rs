//! The entries, found by partition and ordered by use. They live in chunks, so that their number grows without a copy
//! of all of them, and know their neighbours by index.

use hashbrown::HashTable;
use queen_types::PartitionId;

use crate::ALLOCATION;
use crate::entry::Entry;

/// Entries of a chunk.
const CHUNK: usize = 64;
const NONE: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(crate) struct Slab {
    chunks: Vec<Box<[Option<Entry>; CHUNK]>>,
    free: Vec<u32>,
    index: HashTable<u32>,
    newest: Option<u32>,
    oldest: Option<u32>,
}

impl Slab {
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// Bytes of the chunks and the index, not of what the entries hold.
    pub(crate) fn heap(&self) -> usize {
        self.chunks.capacity() * size_of::<usize>()
            + self.chunks.len() * (size_of::<[Option<Entry>; CHUNK]>() + ALLOCATION)
            + self.free.capacity() * size_of::<u32>()
            + self.index.allocation_size()
    }

    /// Whether another entry needs a new chunk.
    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    pub(crate) fn chunk_bytes() -> usize {
        size_of::<[Option<Entry>; CHUNK]>() + ALLOCATION
    }

    pub(crate) fn find(&self, partition: PartitionId) -> Option<u32> {
        self.index
            .find(mix(partition), |at| self.get(*at).is_some_and(|entry| entry.partition == partition))
            .copied()
    }

    pub(crate) fn get(&self, at: u32) -> Option<&Entry> {
        self.chunks.get(at as usize / CHUNK)?[at as usize % CHUNK].as_ref()
    }

    pub(crate) fn get_mut(&mut self, at: u32) -> Option<&mut Entry> {
        self.chunks.get_mut(at as usize / CHUNK)?[at as usize % CHUNK].as_mut()
    }

    /// Adds an entry as the newest. Its partition must not have one.
    pub(crate) fn insert(&mut self, entry: Entry) -> u32 {
        if self.free.is_empty() {
            let first = self.chunks.len() * CHUNK;
            self.chunks.push(Box::new([const { None }; CHUNK]));
            self.free.extend((first..first + CHUNK).rev().map(|at| at as u32));
        }
        let partition = entry.partition;
        let at = self.free.pop().unwrap_or(NONE);
        if let Some(slot) = self.chunks.get_mut(at as usize / CHUNK) {
            slot[at as usize % CHUNK] = Some(entry);
        }
        let chunks = &self.chunks;
        self.index.insert_unique(mix(partition), at, |at| {
            chunks
                .get(*at as usize / CHUNK)
                .and_then(|chunk| chunk[*at as usize % CHUNK].as_ref())
                .map_or(0, |entry| mix(entry.partition))
        });
        self.link_newest(at);
        at
    }

    pub(crate) fn remove(&mut self, at: u32) -> Option<Entry> {
        self.unlink(at);
        let entry = self.chunks.get_mut(at as usize / CHUNK)?[at as usize % CHUNK].take()?;
        if let Ok(found) = self.index.find_entry(mix(entry.partition), |other| *other == at) {
            found.remove();
        }
        self.free.push(at);
        Some(entry)
    }

    pub(crate) fn oldest(&self) -> Option<u32> {
        self.oldest
    }

    /// Makes an entry the newest.
    pub(crate) fn touch(&mut self, at: u32) {
        if self.newest != Some(at) {
            self.unlink(at);
            self.link_newest(at);
        }
    }

    fn unlink(&mut self, at: u32) {
        let Some((newer, older)) = self.get(at).map(|entry| (entry.newer, entry.older)) else { return };
        match self.get_mut(newer) {
            Some(entry) => entry.older = older,
            None => self.newest = (older != NONE).then_some(older),
        }
        match self.get_mut(older) {
            Some(entry) => entry.newer = newer,
            None => self.oldest = (newer != NONE).then_some(newer),
        }
    }

    fn link_newest(&mut self, at: u32) {
        let before = self.newest.unwrap_or(NONE);
        if let Some(entry) = self.get_mut(at) {
            entry.newer = NONE;
            entry.older = before;
        }
        match self.get_mut(before) {
            Some(entry) => entry.newer = at,
            None => self.oldest = Some(at),
        }
        self.newest = Some(at);
    }

    #[cfg(test)]
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.chunks.iter().flat_map(|chunk| chunk.iter().flatten())
    }
}

/// Ids are random; this brings the bits of both halves together.
fn mix(partition: PartitionId) -> u64 {
    let (high, low) = partition.0.as_u64_pair();
    (high ^ low.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
