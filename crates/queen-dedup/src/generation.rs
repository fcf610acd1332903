//! A run of offsets and 32 bits of each hash that is stored there.

use queen_types::Offset;

use crate::{ALLOCATION, HASH_LEN};

/// Slots up to which a generation is a plain list that is searched from end to end.
const LIST_MAX: usize = 32;
/// Slots of the largest generation. A hash that repeats a stored one has PostgreSQL look through one generation, so
/// larger ones would make duplicates slow, and smaller ones the search of a partition with very many hashes.
pub(crate) const SLOTS_MAX: usize = 16_384;
const SLOTS_MIN: usize = 4;

/// A hash as the cache sees it: 32 bits that are kept, 64 others that say where.
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
            // Zero is an empty slot.
            Key { mark: (bits as u32).max(1), place: (bits >> 64) as u64 }
        })
    }
}

/// Covers the offsets above the generation before it, up to `upto`.
#[derive(Debug)]
pub(crate) struct Generation {
    slots: Box<[u32]>,
    pub(crate) upto: Offset,
    /// Seconds at which its newest hash was stored.
    pub(crate) newest: u32,
    /// Seconds at which it took its first hash.
    pub(crate) born: u32,
    len: u16,
}

impl Generation {
    /// Holds nothing and allocates nothing.
    pub(crate) fn empty(upto: Offset, now: u32) -> Generation {
        Generation { slots: Box::default(), upto, newest: now, born: now, len: 0 }
    }

    /// For at least `hashes` of them, as far as the largest generation can hold, with `slots` slots at least.
    pub(crate) fn sized(upto: Offset, now: u32, hashes: usize, slots: usize) -> Generation {
        let wanted = if hashes <= LIST_MAX { hashes } else { hashes.div_ceil(4).saturating_mul(5) };
        let slots = wanted.max(slots).clamp(SLOTS_MIN, SLOTS_MAX);
        Generation { slots: vec![0; slots].into_boxed_slice(), upto, newest: now, born: now, len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.len)
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

    /// Adds a hash; there must be [`room`](Generation::room).
    pub(crate) fn insert(&mut self, key: Key) {
        let at = if self.is_list() { self.len() } else { self.free_slot(key) };
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = key.mark;
            self.len += 1;
        }
    }

    fn free_slot(&self, key: Key) -> usize {
        let mut at = self.home(key);
        while self.slots[at] != 0 {
            at = self.next(at);
        }
        at
    }

    /// Whether the hash may be among them. Never wrongly no.
    pub(crate) fn may_hold(&self, key: Key) -> bool {
        if self.is_list() {
            return self.slots[..self.len()].contains(&key.mark);
        }
        let mut at = self.home(key);
        // A table is never full, so an empty slot comes.
        loop {
            match self.slots[at] {
                0 => return false,
                mark if mark == key.mark => return true,
                _ => at = self.next(at),
            }
        }
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
        for size in [1, 4, 5, 31, 32, 33, 34, 100, 1000, 13_104] {
            let mut generation = Generation::sized(0, 0, size, 0);
            assert!(generation.room() >= size, "{size}");
            (0..size as u64).for_each(|n| generation.insert(key(n)));
            assert_eq!(generation.len(), size);
            assert!((0..size as u64).all(|n| generation.may_hold(key(n))), "{size}");
        }
    }

    #[test]
    fn a_full_table_says_maybe_of_next_to_nothing_else() {
        let mut generation = Generation::sized(0, 0, usize::MAX / 8, 0);
        let room = generation.room() as u64;
        (0..room).for_each(|n| generation.insert(key(n)));
        assert_eq!(generation.room(), 0);
        // About 4e-9 a look-up.
        let wrong = (room..room + 2_000_000).filter(|n| generation.may_hold(key(*n))).count();
        assert!(wrong <= 1, "{wrong}");
        let bytes = generation.heap() as f64 / room as f64;
        assert!(bytes < 5.01, "{bytes} bytes a hash");
    }

    #[test]
    fn a_hash_whose_kept_bits_are_zero_is_kept() {
        for size in [4, 100] {
            let mut generation = Generation::sized(0, 0, size, 0);
            let zero = Key::all(&[0; 16]).next().unwrap();
            generation.insert(zero);
            assert!(generation.may_hold(zero));
        }
    }

    #[test]
    fn a_list_grows_in_place_and_stays_a_list() {
        let mut generation = Generation::sized(0, 0, 1, 0);
        for n in 0..32 {
            assert!(generation.room() > 0 || generation.grow_list(1));
            generation.insert(key(n));
        }
        assert!(!generation.grow_list(1));
        assert_eq!(generation.slots(), 32);
        assert!((0..32).all(|n| generation.may_hold(key(n))));
    }
}
