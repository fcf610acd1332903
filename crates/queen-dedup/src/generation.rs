//! A run of offsets, and of each hash that is stored there 26 bits and about where it is.

use queen_types::Offset;

use crate::{ALLOCATION, HASH_LEN};

/// Slots up to which a generation is a plain list that is searched from end to end.
const LIST_MAX: usize = 32;
/// Slots of the largest generation, one MiB. Each generation is one more place to look for a hash.
pub(crate) const SLOTS_MAX: usize = 262_144;
const SLOTS_MIN: usize = 4;
/// Bits of a slot that number the block of offsets, of 64 in a generation, that the hash is in.
const BLOCK_BITS: u32 = 6;

/// A hash as the cache sees it: 26 bits that are kept, 64 others that say in which slot.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    mark: u32,
    place: u64,
}

impl Key {
    /// Of every whole hash in a run of bytes.
    pub(crate) fn all(hashes: &[u8]) -> impl Iterator<Item = Key> + '_ {
        hashes.as_chunks::<HASH_LEN>().0.iter().map(|hash| {
            let bits = u128::from_be_bytes(*hash);
            // A slot of zero is an empty one.
            Key { mark: (bits as u32 >> BLOCK_BITS).max(1), place: (bits >> 64) as u64 }
        })
    }
}

/// Covers the offsets above the generation before it, up to `upto`: one hash an offset, in order.
#[derive(Debug)]
pub(crate) struct Generation {
    /// Mark and block.
    slots: Box<[u32]>,
    pub(crate) upto: Offset,
    /// Seconds at which its newest hash was stored.
    pub(crate) newest: u32,
    /// Seconds at which it took its first hash.
    pub(crate) born: u32,
    len: u32,
}

impl Generation {
    /// Holds nothing and allocates nothing.
    pub(crate) fn empty(upto: Offset, now: u32) -> Generation {
        Generation { slots: Box::default(), upto, newest: now, born: now, len: 0 }
    }

    /// For `hashes` of them and with `slots` slots at least, as far as `slots_max` goes.
    pub(crate) fn sized(upto: Offset, now: u32, hashes: usize, slots: usize, slots_max: usize) -> Generation {
        let wanted = if hashes <= LIST_MAX { hashes } else { hashes.div_ceil(4).saturating_mul(5) };
        let slots = wanted.max(slots).clamp(SLOTS_MIN, slots_max);
        Generation { slots: vec![0; slots].into_boxed_slice(), upto, newest: now, born: now, len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn is_list(&self) -> bool {
        self.slots.len() <= LIST_MAX
    }

    /// Hashes it can still take: a list all of its slots, a table four fifths of them.
    pub(crate) fn room(&self) -> usize {
        let max = if self.is_list() { self.slots.len() } else { self.slots.len() / 5 * 4 };
        max - self.len()
    }

    /// Bytes on the heap.
    pub(crate) fn heap(&self) -> usize {
        if self.slots.is_empty() { 0 } else { self.slots.len() * size_of::<u32>() + ALLOCATION }
    }

    /// Makes a list longer, when it can still be one.
    pub(crate) fn grow_list(&mut self, more: usize) -> bool {
        let wanted = self.len() + more;
        if !self.is_list() || wanted > LIST_MAX {
            return false;
        }
        let mut slots = vec![0; wanted.next_power_of_two().max(SLOTS_MIN)];
        slots[..self.len()].copy_from_slice(&self.slots[..self.len()]);
        self.slots = slots.into_boxed_slice();
        true
    }

    /// Adds the hash of the next offset; there must be [`room`](Generation::room).
    pub(crate) fn insert(&mut self, key: Key) {
        let block = self.len >> self.block_shift();
        let at = if self.is_list() { self.len() } else { self.free_slot(key) };
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = key.mark << BLOCK_BITS | block;
            self.len += 1;
            self.upto += 1;
        }
    }

    fn free_slot(&self, key: Key) -> usize {
        let mut at = self.home(key);
        while self.slots[at] != 0 {
            at = self.next(at);
        }
        at
    }

    /// Where the hash may be, as `(above, upto]`: the hull of the blocks that may hold it. Never wrongly `None`.
    pub(crate) fn find(&self, key: Key) -> Option<(Offset, Offset)> {
        let mut found: Option<(u32, u32)> = None;
        let mut note = |slot: u32| {
            if slot >> BLOCK_BITS == key.mark {
                let block = slot & ((1 << BLOCK_BITS) - 1);
                found = Some(found.map_or((block, block), |(low, high)| (low.min(block), high.max(block))));
            }
        };
        if self.is_list() {
            self.slots[..self.len()].iter().for_each(|slot| note(*slot));
        } else {
            let mut at = self.home(key);
            // A table is never full, so an empty slot comes.
            while self.slots[at] != 0 {
                note(self.slots[at]);
                at = self.next(at);
            }
        }
        let above = self.upto - Offset::from(self.len);
        let shift = self.block_shift();
        found.map(|(low, high)| {
            (above + (Offset::from(low) << shift), (above + (Offset::from(high + 1) << shift)).min(self.upto))
        })
    }

    /// A block is so many offsets, as a power of two.
    fn block_shift(&self) -> u32 {
        self.slots.len().div_ceil(1 << BLOCK_BITS).next_power_of_two().trailing_zeros()
    }

    fn home(&self, key: Key) -> usize {
        ((u128::from(key.place) * self.slots.len() as u128) >> 64) as usize
    }

    fn next(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() { 0 } else { at + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(n: u64) -> [u8; 16] {
        let mixed = u128::from(n).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        (mixed ^ (mixed >> 61)).wrapping_mul(0xD6E8_FEB8_6659_FD93_A5A3_56B9_1234_5677).to_be_bytes()
    }

    fn key(n: u64) -> Key {
        Key::all(&hash(n)).next().unwrap()
    }

    #[test]
    fn what_went_in_is_found_at_every_size() {
        for size in [1, 4, 5, 31, 32, 33, 34, 64, 65, 100, 1000, 13_104, 209_712] {
            let mut generation = Generation::sized(10, 0, size, 0, SLOTS_MAX);
            assert!(generation.room() >= size, "{size}");
            (0..size as u64).for_each(|n| generation.insert(key(n)));
            assert_eq!((generation.len(), generation.upto), (size, 10 + size as i64));
            for n in 0..size {
                let (above, upto) = generation.find(key(n as u64)).unwrap();
                let offset = 11 + n as i64;
                assert!(above < offset && offset <= upto && upto <= generation.upto, "{size}: {n}");
            }
            // A block is at most a fiftieth of what fits; a stray match may widen one of these.
            let width = |n: u64| generation.find(key(n)).map_or(0, |(above, upto)| upto - above);
            assert!(
                [0, size as u64 / 2].map(width).into_iter().min() <= Some(1 + size as i64 / 20),
                "{size}"
            );
        }
    }

    #[test]
    fn a_full_table_says_maybe_of_next_to_nothing_else() {
        let mut generation = Generation::sized(0, 0, usize::MAX / 8, 0, SLOTS_MAX);
        let room = generation.room() as u64;
        (0..room).for_each(|n| generation.insert(key(n)));
        assert_eq!(generation.room(), 0);
        // Half a dozen slots are looked at on the way, each right by chance once in 2^26.
        let wrong = (room..room + 4_000_000).filter(|n| generation.find(key(*n)).is_some()).count();
        assert!(wrong <= 10, "{wrong}");
        let bytes = generation.heap() as f64 / room as f64;
        assert!(bytes < 5.01, "{bytes} bytes a hash");
    }

    #[test]
    fn a_hash_whose_kept_bits_are_zero_is_kept() {
        for size in [4, 100] {
            let mut generation = Generation::sized(0, 0, size, 0, SLOTS_MAX);
            let zero = Key::all(&[0; 16]).next().unwrap();
            generation.insert(zero);
            assert!(generation.find(zero).is_some());
        }
    }

    #[test]
    fn a_list_grows_in_place_and_stays_a_list() {
        let mut generation = Generation::sized(-1, 0, 1, 0, SLOTS_MAX);
        for n in 0..32 {
            assert!(generation.room() > 0 || generation.grow_list(1));
            generation.insert(key(n));
        }
        assert!(!generation.grow_list(1));
        assert_eq!(generation.slots(), 32);
        assert!((0..32).all(|n| generation.find(key(n)) == Some((n as i64 - 1, n as i64))));
    }
}
