//! Which partitions a lease of this broker covers, so that extending it needs no search. Only a memory: the rows decide.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use queen_types::{Group, LeaseId, PartitionId};

/// Leases remembered; beyond it expired ones are dropped, and if none are, all: a search finds them again.
const LEASES_MAX: usize = 100_000;

#[derive(Default)]
pub(crate) struct Leases {
    known: Mutex<HashMap<LeaseId, Held>>,
    /// Serialises the searches for leases of other brokers, which walk every cursor.
    pub(crate) search: tokio::sync::Mutex<()>,
}

struct Held {
    group: Group,
    partitions: Vec<PartitionId>,
    until: Instant,
}

impl Leases {
    pub(crate) fn put(&self, lease: LeaseId, group: Group, partitions: Vec<PartitionId>, lasts: Duration) {
        let now = Instant::now();
        let mut known = self.known.lock();
        if known.len() >= LEASES_MAX {
            known.retain(|_, held| held.until > now);
            if known.len() >= LEASES_MAX {
                known.clear();
            }
        }
        known.insert(lease, Held { group, partitions, until: now + lasts });
    }

    pub(crate) fn get(&self, lease: &LeaseId) -> Option<(Vec<PartitionId>, Group)> {
        self.known.lock().get(lease).map(|held| (held.partitions.clone(), held.group.clone()))
    }

    /// Notes an extension.
    pub(crate) fn extended(&self, lease: &LeaseId, lasts: Duration) {
        if let Some(held) = self.known.lock().get_mut(lease) {
            held.until = held.until.max(Instant::now() + lasts);
        }
    }

    /// Notes that the lease no longer covers a partition.
    pub(crate) fn released(&self, lease: &LeaseId, partition: PartitionId) {
        let mut known = self.known.lock();
        if let Some(held) = known.get_mut(lease) {
            held.partitions.retain(|p| *p != partition);
            if held.partitions.is_empty() {
                known.remove(lease);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use queen_types::Uuid;

    #[test]
    fn a_lease_is_forgotten_with_its_last_partition() {
        let leases = Leases::default();
        let (lease, a, b) =
            (LeaseId::mint(), PartitionId(Uuid::from_u128(1)), PartitionId(Uuid::from_u128(2)));
        leases.put(lease.clone(), Group::queue_mode(), vec![a, b], Duration::from_secs(9));
        leases.released(&lease, a);
        assert_eq!(leases.get(&lease).map(|(p, _)| p), Some(vec![b]));
        leases.released(&lease, b);
        assert!(leases.get(&lease).is_none());
    }
}
