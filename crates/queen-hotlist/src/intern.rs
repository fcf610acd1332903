use hashbrown::HashTable;
use queen_types::{PartitionId, PartitionName};

use crate::wheel::SLOT_TAG;
use crate::{grow, work};

/// Partitions of one queue, by dense index: 32 bytes and 5 to 10 of the hash table each, and the text of a name
/// that nobody else holds.
///
/// Indexes of forgotten partitions are used again.
#[derive(Debug, Default)]
pub(crate) struct Partitions {
    ids: Vec<PartitionId>,
    /// `None`: a free index.
    names: Vec<Option<PartitionName>>,
    table: HashTable<u32>,
    free: Vec<u32>,
    name_bytes: usize,
}

/// Ids are minted by the database, so spreading their bits is enough; nobody outside can aim for collisions.
fn hash(id: PartitionId) -> u64 {
    let bits = id.0.as_u128();
    let folded = (bits >> 64) as u64 ^ (bits as u64).rotate_left(32);
    let mixed = (folded ^ folded >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

/// What an `Arc<str>` of a name takes beside the pointer to it.
fn text_bytes(name: &PartitionName) -> usize {
    (2 * size_of::<usize>() + name.as_str().len()).next_multiple_of(size_of::<usize>())
}

impl Partitions {
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn find(&self, id: PartitionId) -> Option<u32> {
        let equals = |index: &u32| {
            work::step();
            self.ids[*index as usize] == id
        };
        self.table.find(hash(id), equals).copied()
    }

    /// The index of a partition, which is new or known. `None`: there are four thousand million already.
    pub(crate) fn intern(&mut self, id: PartitionId, name: &PartitionName) -> Option<u32> {
        if let Some(index) = self.find(id) {
            return Some(index);
        }
        let index = match self.free.pop() {
            Some(index) => {
                self.ids[index as usize] = id;
                self.names[index as usize] = Some(name.clone());
                index
            }
            None => {
                let index = u32::try_from(self.ids.len()).ok().filter(|index| *index < SLOT_TAG)?;
                grow::push(&mut self.ids, id);
                grow::push(&mut self.names, Some(name.clone()));
                index
            }
        };
        self.name_bytes += text_bytes(name);
        let ids = &self.ids;
        self.table.insert_unique(hash(id), index, |index| hash(ids[*index as usize]));
        Some(index)
    }

    pub(crate) fn forget(&mut self, id: PartitionId) -> Option<u32> {
        let found = self.table.find_entry(hash(id), |index| self.ids[*index as usize] == id).ok()?;
        let (index, _) = found.remove();
        if let Some(name) = self.names[index as usize].take() {
            self.name_bytes -= text_bytes(&name);
        }
        grow::push(&mut self.free, index);
        Some(index)
    }

    /// Whether an index still stands for this partition.
    pub(crate) fn is(&self, index: u32, id: PartitionId) -> bool {
        let index = index as usize;
        self.ids.get(index) == Some(&id) && self.names[index].is_some()
    }

    pub(crate) fn get(&self, index: u32) -> Option<(PartitionId, &PartitionName)> {
        let name = self.names.get(index as usize)?.as_ref()?;
        Some((self.ids[index as usize], name))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.ids.capacity() * size_of::<PartitionId>()
            + self.names.capacity() * size_of::<Option<PartitionName>>()
            + self.table.allocation_size()
            + self.free.capacity() * size_of::<u32>()
            + self.name_bytes
    }
}

#[cfg(test)]
mod tests {
    use queen_types::Uuid;

    use super::*;

    fn id(n: u128) -> PartitionId {
        PartitionId(Uuid::from_u128(n))
    }

    fn name(text: &str) -> PartitionName {
        PartitionName::new(text).unwrap()
    }

    #[test]
    fn a_partition_keeps_its_index_until_it_is_forgotten() {
        let mut partitions = Partitions::default();
        assert_eq!(partitions.intern(id(7), &name("a")), Some(0));
        assert_eq!(partitions.intern(id(8), &name("b")), Some(1));
        assert_eq!(partitions.intern(id(7), &name("a")), Some(0));
        assert_eq!(partitions.forget(id(7)), Some(0));
        assert_eq!(partitions.forget(id(7)), None);
        assert_eq!((partitions.find(id(7)), partitions.find(id(8))), (None, Some(1)));
        assert!(!partitions.is(0, id(7)) && partitions.get(0).is_none());
        assert_eq!(partitions.intern(id(9), &name("c")), Some(0));
        assert!(partitions.is(0, id(9)) && !partitions.is(0, id(7)));
        assert_eq!(partitions.len(), 2);
    }

    #[test]
    fn ids_that_differ_little_spread() {
        for shift in [0, 16, 32, 48, 64, 80, 96, 112] {
            let mut partitions = Partitions::default();
            for n in 0..10_000u128 {
                partitions.intern(id(n << shift), &name("")).unwrap();
            }
            work::taken();
            for n in 0..10_000u128 {
                assert!(partitions.find(id(n << shift)).is_some());
            }
            let probes = work::taken();
            assert!(probes < 12_000, "shift {shift}: {probes} probes for 10,000 look-ups");
        }
    }
}
