use crate::Millis;
use crate::entry::{Entry, NIL};
use crate::work;

/// Bits of time that one level decides.
const BITS: u32 = 4;
/// Slots of a level.
const SLOTS: u32 = 1 << BITS;
/// Levels that cover every `u64` of milliseconds; a ring has heads only for those that it has used.
const LEVELS: usize = (u64::BITS / BITS) as usize;
/// `prev` of the first entry of a slot: this plus the slot's number. Indexes stay below.
pub(crate) const SLOT_TAG: u32 = NIL - 256;

/// Parked entries by time: a hierarchical timer wheel of single milliseconds whose slots are linked through the
/// entries.
///
/// Parking and removing change a constant number of links; nothing is deleted lazily, so there is no garbage to
/// grow. An entry that comes due has moved down at most once a level, which for a minute are four moves.
///
/// Invariant: an entry at level L agrees with `elapsed` in every digit (of [`BITS`] bits) above L and is greater in
/// digit L. Hence every entry of a lower level is due before any of a higher one, and slots never wrap.
#[derive(Debug)]
pub(crate) struct Wheel {
    elapsed: u64,
    len: u32,
    /// Which levels have an entry.
    levels: u16,
    /// Which slots of a level have one.
    occupied: [u16; LEVELS],
    /// First entry of each slot of the levels used so far.
    heads: Vec<u32>,
}

impl Wheel {
    pub(crate) fn new() -> Wheel {
        Wheel { elapsed: 0, len: 0, levels: 0, occupied: [0; LEVELS], heads: Vec::new() }
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.heads.capacity() * size_of::<u32>()
    }

    /// Parks an entry until its `at`, which lies after `now`.
    pub(crate) fn insert(&mut self, entries: &mut [Entry], index: u32, now: Millis) {
        if self.len == 0 {
            self.elapsed = self.elapsed.max(now.0);
        }
        self.len += 1;
        let entry = &mut entries[index as usize];
        entry.at = Millis(entry.at.0.max(self.elapsed.saturating_add(1)));
        self.link(entries, index);
    }

    pub(crate) fn remove(&mut self, entries: &mut [Entry], index: u32) {
        work::step();
        self.len -= 1;
        let Entry { prev, next, .. } = entries[index as usize];
        if next != NIL {
            entries[next as usize].prev = prev;
        }
        if prev < SLOT_TAG {
            entries[prev as usize].next = next;
            return;
        }
        let slot = prev - SLOT_TAG;
        self.heads[slot as usize] = next;
        if next == NIL {
            self.vacate(slot);
        }
    }

    /// A lower bound of the time at which [`Wheel::pop_due`] has something to do; exact for what is due within the
    /// next [`SLOTS`] milliseconds.
    pub(crate) fn next_due(&self) -> Option<Millis> {
        self.first_slot().map(|slot| Millis(self.start_of(slot)))
    }

    /// Takes the earliest entry that is due out of the wheel. The caller goes on until there is none.
    pub(crate) fn pop_due(&mut self, entries: &mut [Entry], now: Millis) -> Option<u32> {
        while let Some(slot) = self.first_slot() {
            work::step();
            let start = self.start_of(slot);
            if start > now.0 {
                break;
            }
            self.elapsed = start;
            let head = self.heads[slot as usize];
            if slot < SLOTS {
                self.remove(entries, head);
                return Some(head);
            }
            self.heads[slot as usize] = NIL;
            self.vacate(slot);
            self.cascade(entries, head);
        }
        self.elapsed = self.elapsed.max(now.0);
        None
    }

    /// Links the entries of a slot whose time has begun into the levels below.
    fn cascade(&mut self, entries: &mut [Entry], head: u32) {
        let mut index = head;
        while index != NIL {
            let next = entries[index as usize].next;
            self.link(entries, index);
            index = next;
        }
    }

    fn link(&mut self, entries: &mut [Entry], index: u32) {
        work::step();
        let at = entries[index as usize].at.0;
        let level = (u64::BITS - 1 - ((self.elapsed ^ at) | 1).leading_zeros()) / BITS;
        let digit = (at >> (level * BITS)) as u32 & (SLOTS - 1);
        let slot = level * SLOTS + digit;
        self.use_level(level);
        self.levels |= 1 << level;
        self.occupied[level as usize] |= 1 << digit;
        let head = std::mem::replace(&mut self.heads[slot as usize], index);
        if head != NIL {
            entries[head as usize].prev = index;
        }
        let entry = &mut entries[index as usize];
        (entry.prev, entry.next) = (SLOT_TAG + slot, head);
    }

    fn use_level(&mut self, level: u32) {
        let wanted = ((level + 1) * SLOTS) as usize;
        if self.heads.len() < wanted {
            self.heads.reserve_exact(wanted - self.heads.len());
            self.heads.resize(wanted, NIL);
        }
    }

    fn vacate(&mut self, slot: u32) {
        let (level, digit) = (slot / SLOTS, slot % SLOTS);
        let occupied = &mut self.occupied[level as usize];
        *occupied &= !(1 << digit);
        if *occupied == 0 {
            self.levels &= !(1 << level);
        }
    }

    /// The occupied slot that begins first.
    fn first_slot(&self) -> Option<u32> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros();
        Some(level * SLOTS + self.occupied[level as usize].trailing_zeros())
    }

    fn start_of(&self, slot: u32) -> u64 {
        let (level, digit) = (slot / SLOTS, u64::from(slot % SLOTS));
        let above = self.elapsed.checked_shr((level + 1) * BITS).unwrap_or(0);
        above.checked_shl((level + 1) * BITS).unwrap_or(0) | digit << (level * BITS)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Parks at each of `times` from `start`, then steps through `nows` and collects (entry's time, when it came).
    fn run(start: u64, times: &[u64], nows: &[u64]) -> Vec<(u64, u64)> {
        let mut entries = vec![Entry::IDLE; times.len()];
        let mut wheel = Wheel::new();
        for (i, at) in times.iter().enumerate() {
            entries[i].at = Millis(*at);
            wheel.insert(&mut entries, i as u32, Millis(start));
        }
        let mut came = Vec::new();
        for now in nows {
            while let Some(i) = wheel.pop_due(&mut entries, Millis(*now)) {
                came.push((entries[i as usize].at.0, *now));
            }
        }
        assert_eq!(wheel.len() as usize, times.len() - came.len());
        came
    }

    #[test]
    fn entries_come_due_in_order_of_time_and_never_early() {
        let came =
            run(1_000, &[1_500, 1_001, 61_000, 1_016, 1_015], &[1_000, 1_015, 1_016, 1_499, 1_500, 99_000]);
        assert_eq!(came, [(1_001, 1_015), (1_015, 1_015), (1_016, 1_016), (1_500, 1_500), (61_000, 99_000)]);
    }

    #[test]
    fn the_whole_range_of_time_is_covered() {
        assert_eq!(run(0, &[u64::MAX], &[1 << 40, u64::MAX]), [(u64::MAX, u64::MAX)]);
        assert_eq!(run(u64::MAX - 1, &[u64::MAX], &[u64::MAX]), [(u64::MAX, u64::MAX)]);
    }

    #[test]
    fn a_driver_that_sleeps_until_next_due_arrives_exactly_and_soon() {
        for at in [1u64, 15, 16, 17, 255, 256, 1_000, 60_300, 3_600_000] {
            let mut entries = [Entry::IDLE];
            let mut wheel = Wheel::new();
            entries[0].at = Millis(777 + at);
            wheel.insert(&mut entries, 0, Millis(777));
            let mut wakes = 0;
            loop {
                let now = wheel.next_due().unwrap();
                wakes += 1;
                if wheel.pop_due(&mut entries, now).is_some() {
                    assert_eq!(now, Millis(777 + at));
                    break;
                }
            }
            assert!(wakes <= 6, "{at} took {wakes} wakes");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost_early_or_out_of_order(
            start in 0u64..1 << 20,
            mut deltas in prop::collection::vec(1u64..200_000, 1..60),
            removed in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
            steps in prop::collection::vec(1u64..30_000, 1..40),
        ) {
            let mut entries = vec![Entry::IDLE; deltas.len()];
            let mut wheel = Wheel::new();
            let mut parked = vec![true; deltas.len()];
            for (i, delta) in deltas.iter_mut().enumerate() {
                *delta += start;
                entries[i].at = Millis(*delta);
                wheel.insert(&mut entries, i as u32, Millis(start));
            }
            let mut now = start;
            let mut removed = removed.into_iter();
            for step in steps {
                if let Some(index) = removed.next() {
                    let i = index.index(deltas.len());
                    if std::mem::take(&mut parked[i]) {
                        wheel.remove(&mut entries, i as u32);
                    }
                }
                now += step;
                let mut last = 0;
                while let Some(i) = wheel.pop_due(&mut entries, Millis(now)) {
                    prop_assert!(std::mem::take(&mut parked[i as usize]));
                    let at = deltas[i as usize];
                    prop_assert!(at <= now && at >= last);
                    last = at;
                }
                for (i, parked) in parked.iter().enumerate() {
                    prop_assert!(!parked || deltas[i] > now);
                }
                prop_assert_eq!(wheel.len() as usize, parked.iter().filter(|p| **p).count());
                let earliest = (0..deltas.len()).filter(|i| parked[*i]).map(|i| deltas[i]).min();
                match (wheel.next_due(), earliest) {
                    (None, None) => {}
                    (Some(due), Some(at)) => prop_assert!(due.0 > now && due.0 <= at),
                    other => prop_assert!(false, "{other:?}"),
                }
            }
        }
    }
}
