use crate::Millis;
use crate::ring::Ring;

/// Figures of one ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RingStats {
    /// Entries in the ready list.
    pub ready: usize,
    /// Entries parked until a time.
    pub wheel: usize,
    /// Entries checked out.
    pub inflight: usize,
    /// Messages that ready entries are known to hold. An estimate: too low where a walk found a partition, too high
    /// where another broker served it.
    pub ready_messages: u64,
    /// Since when the head of the ready list is ready.
    pub oldest_ready: Option<Millis>,
}

impl RingStats {
    pub(crate) fn of(ring: &Ring) -> RingStats {
        let (ready, wheel, inflight) = ring.counts();
        let (ready_messages, oldest_ready) = (ring.ready_messages(), ring.oldest_ready());
        RingStats { ready, wheel, inflight, ready_messages, oldest_ready }
    }
}

/// Figures of one queue: sums over its rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Groups with a ring.
    pub rings: usize,
    /// Partitions with an index.
    pub partitions: usize,
    /// Entries in the ready lists.
    pub ready: usize,
    /// Entries parked until a time.
    pub wheel: usize,
    /// Entries checked out.
    pub inflight: usize,
    /// Since when the longest ready head is ready.
    pub oldest_ready: Option<Millis>,
}

impl Stats {
    pub(crate) fn add(&mut self, ring: &RingStats) {
        self.rings += 1;
        self.ready += ring.ready;
        self.wheel += ring.wheel;
        self.inflight += ring.inflight;
        self.oldest_ready = match (self.oldest_ready, ring.oldest_ready) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}
