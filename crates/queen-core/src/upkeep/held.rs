//! Partitions whose old data a cursor holds. When the cursor moves, which this broker sees as an ack, they are looked at
//! in the next cycle instead of when their turn comes again.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use queen_types::PartitionId;

/// Partitions that are remembered at most; beyond it they wait for their turn.
const HELD_MAX: usize = 100_000;

#[derive(Default)]
pub(crate) struct Held {
    /// Whether anything is held at all: acks look no further while nothing is.
    some: AtomicBool,
    sets: Mutex<Sets>,
}

#[derive(Default)]
struct Sets {
    held: HashSet<PartitionId>,
    moved: Vec<PartitionId>,
}

impl Held {
    /// Remembers partitions that were put back.
    pub(crate) fn hold(&self, partitions: &[PartitionId]) {
        if partitions.is_empty() {
            return;
        }
        let mut sets = self.sets.lock();
        let room = HELD_MAX.saturating_sub(sets.held.len());
        sets.held.extend(partitions.iter().take(room));
        self.some.store(!sets.held.is_empty(), Ordering::Relaxed);
    }

    /// A cursor of the partition moved.
    pub(crate) fn moved(&self, partition: PartitionId) {
        if !self.some.load(Ordering::Relaxed) {
            return;
        }
        let mut sets = self.sets.lock();
        if sets.held.remove(&partition) {
            sets.moved.push(partition);
            self.some.store(!sets.held.is_empty(), Ordering::Relaxed);
        }
    }

    /// Takes the partitions whose cursors moved.
    pub(crate) fn take(&self) -> Vec<PartitionId> {
        std::mem::take(&mut self.sets.lock().moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use queen_types::Uuid;

    #[test]
    fn only_what_was_held_is_looked_at_again_and_once() {
        let held = Held::default();
        let [a, b] = [1, 2].map(|n| PartitionId(Uuid::from_u128(n)));
        held.moved(a);
        assert_eq!(held.take(), []);
        held.hold(&[a]);
        held.moved(b);
        held.moved(a);
        held.moved(a);
        assert_eq!(held.take(), [a]);
        assert_eq!(held.take(), []);
    }
}
