//! Which partitions have messages in the spool, for brokers that keep the order of a partition through an outage.

use std::collections::HashMap;

use queen_spool::{Entry, Event, Spool};
use queen_storage::PartitionKey;

#[derive(Debug, Default)]
pub(crate) struct Keys {
    waiting: HashMap<PartitionKey, u64>,
}

impl Keys {
    /// The partitions of everything that a directory holds. Blocking.
    pub(super) fn of(spool: &Spool) -> Keys {
        let mut keys = Keys::default();
        for name in spool.ready() {
            let Ok(mut reader) = spool.reader(&name) else { continue };
            while let Ok(Entry::Record(_, event)) = reader.next_entry() {
                if let Ok(event) = event {
                    keys.add(key(&event), 1);
                }
            }
        }
        keys
    }

    pub(super) fn has(&self, key: &PartitionKey) -> bool {
        self.waiting.contains_key(key)
    }

    pub(super) fn add(&mut self, key: PartitionKey, events: u64) {
        *self.waiting.entry(key).or_default() += events;
    }

    pub(super) fn remove(&mut self, key: &PartitionKey, events: u64) {
        if let Some(waiting) = self.waiting.get_mut(key) {
            *waiting = waiting.saturating_sub(events);
            if *waiting == 0 {
                self.waiting.remove(key);
            }
        }
    }
}

pub(super) fn key(event: &Event) -> PartitionKey {
    PartitionKey { tenant: event.tenant, queue: event.queue.clone(), partition: event.partition.clone() }
}
