//! The slots that are in flight.

use std::time::Duration;

use crate::lane::Lane;

/// Names one slot in flight. Each is released once; a second release of it is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SlotId {
    place: u32,
    /// Tells apart the slots that had one place after another.
    stamp: u32,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub(crate) lane: Lane,
    pub(crate) since: Duration,
}

/// As many places as were ever needed at once, which the ceiling of the budget bounds.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    places: Vec<Place>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place {
    stamp: u32,
    held: Option<Held>,
}

impl Slots {
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(crate) fn hold(&mut self, held: Held) -> SlotId {
        if let Some(place) = self.free.pop()
            && let Some(entry) = self.places.get_mut(place as usize)
        {
            entry.stamp = entry.stamp.wrapping_add(1);
            entry.held = Some(held);
            return SlotId { place, stamp: entry.stamp };
        }
        let place = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        self.places.push(Place { stamp: 0, held: Some(held) });
        SlotId { place, stamp: 0 }
    }

    pub(crate) fn release(&mut self, id: SlotId) -> Option<Held> {
        let entry = self.places.get_mut(id.place as usize).filter(|entry| entry.stamp == id.stamp)?;
        let held = entry.held.take()?;
        self.free.push(id.place);
        Some(held)
    }

    /// Since when the oldest slot is held that is not in the maintenance lane.
    pub(crate) fn oldest(&self) -> Option<Duration> {
        let held = self.places.iter().filter_map(|place| place.held);
        held.filter(|held| held.lane != Lane::Maint).map(|held| held.since).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_released_once_even_when_its_place_is_taken_again() {
        let held = |ms| Held { lane: Lane::Pop, since: Duration::from_millis(ms) };
        let mut slots = Slots::default();
        let (first, second) = (slots.hold(held(5)), slots.hold(held(3)));
        assert_eq!((slots.len(), slots.oldest()), (2, Some(Duration::from_millis(3))));
        assert!(slots.release(first).is_some());
        assert!(slots.release(first).is_none());
        let third = slots.hold(held(7));
        assert!(slots.release(first).is_none(), "its place belongs to the third");
        assert_eq!(slots.len(), 2);
        assert!(slots.release(second).is_some() && slots.release(third).is_some());
        assert_eq!((slots.len(), slots.places.len()), (0, 2));
    }

    #[test]
    fn maintenance_is_never_the_oldest() {
        let mut slots = Slots::default();
        slots.hold(Held { lane: Lane::Maint, since: Duration::ZERO });
        assert_eq!(slots.oldest(), None);
    }
}
