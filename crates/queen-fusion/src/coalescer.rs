use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;

/// Bounds of what flies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bundles that fly at the same time, at least 1. Few full commits beat many small ones: while one is being synced
    /// the next gathers.
    pub bundles: usize,
    /// Keys of one bundle.
    pub lanes: usize,
    /// Bytes of one bundle.
    pub bytes: usize,
    /// Ids (messages) of one key in one bundle.
    pub lane_ids: usize,
}

impl Default for Limits {
    /// Two bundles of up to 512 partitions and 8 MiB, 10,000 messages of each partition: the bound of a segment.
    fn default() -> Self {
        Limits { bundles: 2, lanes: 512, bytes: 8 * 1024 * 1024, lane_ids: 10_000 }
    }
}

/// A request that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item<T> {
    /// The request itself.
    pub work: T,
    /// Identities that must not occur twice under one key in one bundle: hashes of transaction ids.
    pub ids: Vec<u128>,
    /// Its weight.
    pub bytes: usize,
}

/// Requests that share a commit.
#[derive(Debug)]
pub struct Bundle<K, T> {
    /// One entry per key, longest waiting first.
    pub lanes: Vec<BundleLane<K, T>>,
}

/// What a bundle carries for one key.
#[derive(Debug)]
pub struct BundleLane<K, T> {
    /// The key.
    pub key: K,
    /// Its items in the order of their submission.
    pub items: Vec<Item<T>>,
}

/// The requests that wait and the keys that fly.
#[derive(Debug)]
pub struct Coalescer<K, T> {
    limits: Limits,
    lanes: HashMap<K, Lane<T>>,
    /// Keys with waiting items that do not fly, longest waiting first.
    ready: VecDeque<K>,
    flying: usize,
    waiting_bytes: usize,
}

#[derive(Debug)]
struct Lane<T> {
    waiting: VecDeque<Item<T>>,
    flying: bool,
}

impl<K: Clone + Eq + Hash, T> Coalescer<K, T> {
    /// An empty one. Limits below 1 count as 1.
    pub fn new(limits: Limits) -> Self {
        let limits = Limits {
            bundles: limits.bundles.max(1),
            lanes: limits.lanes.max(1),
            bytes: limits.bytes.max(1),
            lane_ids: limits.lane_ids.max(1),
        };
        Coalescer { limits, lanes: HashMap::new(), ready: VecDeque::new(), flying: 0, waiting_bytes: 0 }
    }

    /// Bytes of the items that wait; those that fly do not count.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Bundles that fly.
    pub fn flying(&self) -> usize {
        self.flying
    }

    /// Adds an item behind those of its key.
    pub fn submit(&mut self, key: K, item: Item<T>) {
        self.waiting_bytes += item.bytes;
        if let Some(lane) = self.lanes.get_mut(&key) {
            // A lane that does not fly is in `ready` already, for it has something waiting.
            lane.waiting.push_back(item);
            return;
        }
        self.lanes.insert(key.clone(), Lane { waiting: VecDeque::from([item]), flying: false });
        self.ready.push_back(key);
    }

    /// The next bundle, when one may fly and something waits. Its keys fly until they are [done](Self::done).
    pub fn take(&mut self) -> Option<Bundle<K, T>> {
        if self.flying >= self.limits.bundles || self.ready.is_empty() {
            return None;
        }
        let mut lanes = Vec::new();
        let mut room = self.limits.bytes;
        while lanes.len() < self.limits.lanes {
            let Some(key) = self.ready.pop_front() else { break };
            let Some(lane) = self.lanes.get_mut(&key) else { continue };
            let items = lane.board(&mut room, self.limits.lane_ids, lanes.is_empty());
            if items.is_empty() {
                // The bundle is full; this key stays first in line.
                self.ready.push_front(key);
                break;
            }
            lane.flying = true;
            self.waiting_bytes -= items.iter().map(|item| item.bytes).sum::<usize>();
            lanes.push(BundleLane { key, items });
        }
        self.flying += 1;
        Some(Bundle { lanes })
    }

    /// Ends a bundle: its keys may fly again.
    pub fn done<'k>(&mut self, keys: impl IntoIterator<Item = &'k K>)
    where
        K: 'k,
    {
        self.flying = self.flying.saturating_sub(1);
        for key in keys {
            let Some(lane) = self.lanes.get_mut(key) else { continue };
            lane.flying = false;
            if lane.waiting.is_empty() {
                self.lanes.remove(key);
            } else {
                self.ready.push_back(key.clone());
            }
        }
    }
}

impl<T> Lane<T> {
    /// Takes the items that fit; with `force` the first one fits whatever its size.
    fn board(&mut self, room: &mut usize, ids_max: usize, force: bool) -> Vec<Item<T>> {
        let mut items: Vec<Item<T>> = Vec::new();
        let mut seen: HashSet<u128> = HashSet::new();
        let mut count = 0;
        while let Some(next) = self.waiting.front() {
            let first = items.is_empty();
            let fits = next.bytes <= *room || (first && force);
            let crowded = !first && count + next.ids.len() > ids_max;
            if !fits || crowded {
                break;
            }
            // One item alone needs no comparison.
            if !first {
                if seen.is_empty() {
                    seen.extend(items.iter().flat_map(|item| item.ids.iter().copied()));
                }
                if next.ids.iter().any(|id| seen.contains(id)) {
                    break;
                }
                seen.extend(next.ids.iter().copied());
            }
            *room = room.saturating_sub(next.bytes);
            count += next.ids.len();
            let Some(next) = self.waiting.pop_front() else { break };
            items.push(next);
        }
        items
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn item(work: u32, ids: &[u128], bytes: usize) -> Item<u32> {
        Item { work, ids: ids.to_vec(), bytes }
    }

    fn flat(bundle: &Bundle<u8, u32>) -> Vec<(u8, Vec<u32>)> {
        bundle.lanes.iter().map(|l| (l.key, l.items.iter().map(|i| i.work).collect())).collect()
    }

    fn land(c: &mut Coalescer<u8, u32>, bundle: &Bundle<u8, u32>) {
        c.done(bundle.lanes.iter().map(|lane| &lane.key));
    }

    #[test]
    fn what_arrives_in_flight_goes_together_next() {
        let mut c = Coalescer::new(Limits { bundles: 1, ..Limits::default() });
        c.submit(1, item(1, &[1], 10));
        let first = c.take().unwrap();
        for work in 2..5 {
            c.submit(1, item(work, &[u128::from(work)], 10));
        }
        c.submit(2, item(9, &[1], 10));
        assert!(c.take().is_none());
        land(&mut c, &first);
        assert_eq!(flat(&c.take().unwrap()), [(2, vec![9]), (1, vec![2, 3, 4])]);
    }

    #[test]
    fn a_key_flies_once_at_a_time_even_when_bundles_are_free() {
        let mut c = Coalescer::new(Limits::default());
        c.submit(1, item(1, &[1], 10));
        let first = c.take().unwrap();
        c.submit(1, item(2, &[2], 10));
        assert!(c.take().is_none());
        c.submit(2, item(3, &[3], 10));
        assert_eq!(flat(&c.take().unwrap()), [(2, vec![3])]);
        land(&mut c, &first);
        assert_eq!(flat(&c.take().unwrap()), [(1, vec![2])]);
    }

    #[test]
    fn a_repeated_id_waits_for_the_next_bundle_and_so_does_what_follows_it() {
        let mut c = Coalescer::new(Limits { bundles: 1, ..Limits::default() });
        c.submit(1, item(1, &[7], 1));
        c.submit(1, item(2, &[8], 1));
        c.submit(1, item(3, &[7], 1));
        c.submit(1, item(4, &[9], 1));
        let first = c.take().unwrap();
        assert_eq!(flat(&first), [(1, vec![1, 2])]);
        land(&mut c, &first);
        assert_eq!(flat(&c.take().unwrap()), [(1, vec![3, 4])]);
    }

    #[test]
    fn a_giant_flies_alone_and_blocks_nobody_for_ever() {
        let mut c = Coalescer::new(Limits { bundles: 1, bytes: 100, ..Limits::default() });
        c.submit(1, item(1, &[1], 5000));
        c.submit(2, item(2, &[2], 10));
        let first = c.take().unwrap();
        assert_eq!(flat(&first), [(1, vec![1])]);
        land(&mut c, &first);
        assert_eq!(flat(&c.take().unwrap()), [(2, vec![2])]);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Submit { key: u8, ids: Vec<u128>, bytes: usize },
        Take,
        Done(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0u8..6, prop::collection::vec(0u128..12, 1..4), 1usize..60)
                .prop_map(|(key, ids, bytes)| Step::Submit { key, ids, bytes }),
            3 => Just(Step::Take),
            2 => (0usize..4).prop_map(Step::Done),
        ]
    }

    proptest! {
        #[test]
        fn order_bounds_and_completeness(steps in prop::collection::vec(step(), 1..200)) {
            let limits = Limits { bundles: 2, lanes: 3, bytes: 100, lane_ids: 6 };
            let mut c = Coalescer::new(limits);
            let mut submitted: HashMap<u8, Vec<u32>> = HashMap::new();
            let mut flown: HashMap<u8, Vec<u32>> = HashMap::new();
            let mut air: Vec<Bundle<u8, u32>> = Vec::new();
            let mut next = 0;
            // What is left flies at the end, so that nothing can be lost unseen.
            let ending = (0..2000).map(|i| if i % 2 == 0 { Step::Take } else { Step::Done(0) });
            for step in steps.into_iter().chain(ending) {
                match step {
                    Step::Submit { key, ids, bytes } => {
                        submitted.entry(key).or_default().push(next);
                        c.submit(key, item(next, &ids, bytes));
                        next += 1;
                    }
                    Step::Take => {
                        let Some(bundle) = c.take() else { continue };
                        prop_assert!(!bundle.lanes.is_empty() && bundle.lanes.len() <= limits.lanes);
                        let bytes: usize = bundle.lanes.iter().flat_map(|l| &l.items).map(|i| i.bytes).sum();
                        let items: usize = bundle.lanes.iter().map(|l| l.items.len()).sum();
                        prop_assert!(bytes <= limits.bytes || items == 1);
                        for lane in &bundle.lanes {
                            let aloft = air.iter().flat_map(|b| &b.lanes).any(|l| l.key == lane.key);
                            prop_assert!(!aloft, "a key flies twice");
                            let count: usize = lane.items.iter().map(|i| i.ids.len()).sum();
                            prop_assert!(count <= limits.lane_ids || lane.items.len() == 1);
                            for (i, a) in lane.items.iter().enumerate() {
                                for b in &lane.items[i + 1..] {
                                    prop_assert!(a.ids.iter().all(|id| !b.ids.contains(id)));
                                }
                            }
                            flown.entry(lane.key).or_default().extend(lane.items.iter().map(|i| i.work));
                        }
                        air.push(bundle);
                        prop_assert!(air.len() <= limits.bundles);
                    }
                    Step::Done(which) => {
                        if which < air.len() {
                            let bundle = air.remove(which);
                            land(&mut c, &bundle);
                        }
                    }
                }
            }
            prop_assert_eq!(flown, submitted);
            prop_assert_eq!((c.waiting_bytes(), c.lanes.len(), c.ready.len()), (0, air.iter().map(|b| b.lanes.len()).sum(), 0));
        }
    }
}
