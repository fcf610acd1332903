use queen_segment::TxnHash;

/// A set of transaction ids: how many they are, and a digest of their hashes in order. As sure as the hash of one id is
/// about one message, and of one size for any batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeySet {
    count: usize,
    digest: TxnHash,
}

impl KeySet {
    /// The set of these ids; one that is named twice counts once.
    pub(crate) fn of<'k>(keys: impl Iterator<Item = &'k str>) -> KeySet {
        KeySet::of_hashes(keys.map(|key| TxnHash::of(key.as_bytes())).collect())
    }

    fn of_hashes(mut hashes: Vec<TxnHash>) -> KeySet {
        hashes.sort_unstable();
        hashes.dedup();
        let bytes: Vec<u8> = hashes.iter().flat_map(|hash| hash.0).collect();
        KeySet { count: hashes.len(), digest: TxnHash::of(&bytes) }
    }

    /// The set of a delivered batch. `None` when an id occurs twice: an ack counts for the lowest offset of its id, so acks
    /// of these ids name no more than that one, and what becomes of the other is for the item-by-item way to decide.
    pub(crate) fn of_batch<'k>(keys: impl Iterator<Item = &'k str>) -> Option<KeySet> {
        let hashes: Vec<TxnHash> = keys.map(|key| TxnHash::of(key.as_bytes())).collect();
        let delivered = hashes.len();
        let set = KeySet::of_hashes(hashes);
        (set.count == delivered && delivered > 0).then_some(set)
    }

    /// How many ids the set has.
    pub(crate) fn len(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_told_by_their_members_alone() {
        let set = |keys: &[&str]| KeySet::of(keys.iter().copied());
        assert_eq!(set(&["a", "b", "c"]), set(&["c", "a", "b", "a"]));
        assert_eq!(set(&["a", "b", "a"]).len(), 2);
        assert_ne!(set(&["a", "b"]), set(&["a", "c"]));
        assert_ne!(set(&["a", "b"]), set(&["a"]));
        assert_ne!(set(&["a"]), set(&[]));
        assert_ne!(set(&["ab"]), set(&["a", "b"]));
    }

    #[test]
    fn a_batch_in_which_an_id_occurs_twice_has_no_set() {
        let batch = |keys: &[&str]| KeySet::of_batch(keys.iter().copied());
        assert_eq!(batch(&["a", "b"]), Some(KeySet::of(["b", "a"].into_iter())));
        assert_eq!(batch(&["a", "a", "b"]), None);
        assert_eq!(batch(&["a", "b", "a"]), None);
        assert_eq!(batch(&["a"]), Some(KeySet::of(["a"].into_iter())));
        assert_eq!(batch(&[]), None);
    }
}
