use crate::reseed::{Page, Walk, WalkEnd};
use crate::{HotQueue, Millis, RingId};

/// When rings are walked. The statement that reads a page is the caller's.
impl HotQueue {
    /// The ring owes a full walk from the beginning, as after a seek.
    pub fn owe_walk(&mut self, ring: RingId) {
        if let Some(ring) = self.rings.get_mut(ring) {
            ring.reseed.owe();
        }
    }

    /// Every ring owes a full walk.
    pub fn owe_walks(&mut self) {
        self.rings.iter_mut().for_each(|ring| ring.reseed.owe());
    }

    /// When the next walk of any ring is due, and whose.
    pub fn next_walk(&self) -> Option<(Millis, RingId)> {
        let due = |(id, ring): (RingId, &crate::ring::Ring)| (ring.reseed.due_at(&self.options.reseed), id);
        self.rings.iter().map(due).min_by_key(|(due, _)| *due)
    }

    /// When the next walk of this ring is due. At or before the present: a pop that finds nothing ready walks first.
    pub fn walk_due(&self, ring: RingId) -> Option<Millis> {
        self.rings.get(ring).map(|ring| ring.reseed.due_at(&self.options.reseed))
    }

    /// Starts the walk that is due. `None`: none is, one is under way, or the ring is gone.
    pub fn start_walk(&mut self, ring: RingId, now: Millis) -> Option<Walk> {
        let ticket = self.ticket();
        self.rings.get_mut(ring)?.reseed.start(ring, ticket, &self.options.reseed, now)
    }

    /// The rows of a page are on the ring. True when the walk goes on with the next page; false when it has seen
    /// everything, reached its limit of pages, was taken for lost, or its ring is gone.
    pub fn walk_page(&mut self, walk: &mut Walk, page: Page, now: Millis) -> bool {
        self.rings.get_mut(walk.ring()).is_some_and(|ring| ring.reseed.page(walk, page, now))
    }

    /// Ends a walk. A failed full walk stays owed. Answers the number of failures in a row when it is worth a warning:
    /// 3, then each power of two.
    #[expect(clippy::needless_pass_by_value, reason = "a walk ends once")]
    pub fn end_walk(&mut self, walk: Walk, end: WalkEnd, now: Millis) -> Option<u32> {
        self.rings.get_mut(walk.ring())?.reseed.end(&walk, end, &self.options.reseed, now)
    }
}
