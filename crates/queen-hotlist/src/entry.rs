use crate::Millis;
use crate::checkout::ClaimId;

/// What a ring knows about one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum State {
    /// Not tracked: nothing is known to be pending.
    Idle,
    /// In the ready list: probably has work.
    Ready,
    /// Parked until a time: visibility deferred, or a live lease.
    Wheel,
    /// Checked out by a pop.
    Inflight,
}

/// End of a list.
pub(crate) const NIL: u32 = u32::MAX;

/// One partition in one ring: 40 bytes, so that 100,000 partitions times 4 groups take 16 MB.
///
/// An entry is in at most one list at a time, and both lists run through the entries themselves: nothing is
/// allocated when it moves.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// READY and INFLIGHT: since when it is ready. WHEEL: when it is looked at again.
    pub(crate) at: Millis,
    /// Neighbours in the ready list or in a slot of the wheel; the two halves of the ticket when INFLIGHT.
    pub(crate) next: u32,
    pub(crate) prev: u32,
    /// Moves with every mark and every release in flight: a claim that saw another epoch may have missed something.
    pub(crate) epoch: u32,
    /// The claim whose lease the ring knows last.
    pub(crate) claim: ClaimId,
    /// The last mark, its low 32 bits: exact for 49 days.
    pending_since: u32,
    /// Whatever the caller wants to find again with the partition; 0: nothing.
    pub(crate) tag: u64,
    /// Messages that are known to be pending, saturating; 0 in a READY entry: unknown.
    pub(crate) count: u16,
    pub(crate) state: State,
    flags: u8,
}

const DRAINED: u8 = 1;
const LEASED: u8 = 2;
const RELEASED: u8 = 4;
const ACKED: u8 = 8;

impl Entry {
    pub(crate) const IDLE: Entry = Entry {
        at: Millis(0),
        next: NIL,
        prev: NIL,
        epoch: 0,
        claim: ClaimId(0),
        pending_since: 0,
        tag: 0,
        count: 0,
        state: State::Idle,
        flags: 0,
    };

    fn set(&mut self, flag: u8, on: bool) {
        if on {
            self.flags |= flag;
        } else {
            self.flags &= !flag;
        }
    }

    /// The last claim reached the partition's tail as it was then.
    pub(crate) fn drained(&self) -> bool {
        self.flags & DRAINED != 0
    }

    pub(crate) fn set_drained(&mut self, on: bool) {
        self.set(DRAINED, on);
    }

    /// Parked for a lease, as opposed to deferred visibility.
    pub(crate) fn leased(&self) -> bool {
        self.flags & LEASED != 0
    }

    pub(crate) fn set_leased(&mut self, on: bool) {
        self.set(LEASED, on);
    }

    /// The last mark, or a walk that found the partition pending.
    pub(crate) fn pending_since(&self, now: Millis) -> Millis {
        Millis(now.0.saturating_sub(u64::from((now.0 as u32).wrapping_sub(self.pending_since))))
    }

    pub(crate) fn set_pending(&mut self, now: Millis) {
        self.pending_since = now.0 as u32;
    }

    /// The lease of the very claim in flight ended before its checkin.
    pub(crate) fn acked(&self) -> bool {
        self.flags & ACKED != 0
    }

    pub(crate) fn set_acked(&mut self, on: bool) {
        self.set(ACKED, on);
    }

    /// A lease ended while the entry was in flight.
    pub(crate) fn released(&self) -> bool {
        self.flags & RELEASED != 0
    }

    pub(crate) fn set_released(&mut self, on: bool) {
        self.set(RELEASED, on);
    }

    pub(crate) fn clear_flags(&mut self) {
        self.flags = 0;
    }

    /// The checkout that holds the entry; meaningful while INFLIGHT only.
    pub(crate) fn ticket(&self) -> u64 {
        u64::from(self.next) << 32 | u64::from(self.prev)
    }

    pub(crate) fn set_ticket(&mut self, ticket: u64) {
        let [a, b, c, d, e, f, g, h] = ticket.to_be_bytes();
        self.next = u32::from_be_bytes([a, b, c, d]);
        self.prev = u32::from_be_bytes([e, f, g, h]);
    }
}

/// An entry as diagnostics and tests see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryView {
    /// Where it is.
    pub state: State,
    /// READY and INFLIGHT: since when it is ready. WHEEL: when it is looked at again.
    pub at: Millis,
    /// Bumped by marks, and by releases in flight.
    pub epoch: u32,
    /// Messages known to be pending, saturating at 65,535.
    pub count: u32,
    /// The last mark.
    pub pending_since: Millis,
    /// The last claim reached the tail.
    pub drained: bool,
}

impl EntryView {
    pub(crate) fn of(entry: &Entry, now: Millis) -> Self {
        EntryView {
            state: entry.state,
            at: entry.at,
            epoch: entry.epoch,
            count: u32::from(entry.count),
            pending_since: entry.pending_since(now),
            drained: entry.drained(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_32_bytes_and_keeps_a_ticket() {
        assert_eq!(size_of::<Entry>(), 40);
        let mut entry = Entry::IDLE;
        for ticket in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
            entry.set_ticket(ticket);
            assert_eq!(entry.ticket(), ticket);
        }
    }
}
