use queen_types::Uuid;

use super::*;

fn partition(n: u128) -> PartitionId {
    // As random as the ids of PostgreSQL.
    PartitionId(Uuid::from_u128((n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)))
}

fn hashes(first: u64, count: u64) -> Vec<u8> {
    (first..first + count)
        .flat_map(|n| {
            let mixed = u128::from(n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
            (mixed ^ (mixed >> 61)).wrapping_mul(0xD6E8_FEB8_6659_FD93_A5A3_56B9_1234_5677).to_be_bytes()
        })
        .collect()
}

fn commit(base: Offset, hashes: &[u8]) -> Commit<'_> {
    Commit { base, hashes, before: None, window: 3600 }
}

fn recount(cache: &DedupCache) -> usize {
    cache.slab.heap() + cache.slab.entries().map(Entry::heap).sum::<usize>()
}

/// Broken by an allocation that is not counted, or counted when it is given back.
#[test]
fn bytes_are_what_the_allocations_are() {
    let mut cache = DedupCache::new(300_000);
    let mut log = std::collections::HashMap::new();
    let mut random = 7_u64;
    for step in 0..30_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let id = (random >> 33) % if step < 15_000 { 40 } else { 700 };
        let count = [1, 1, 3, 20, 250][(random >> 50) as usize % 5];
        let at = log.entry(id).or_insert(0_i64);
        let now = Tick(10_000 + step);
        match (random >> 20) % 50 {
            0 => cache.forget(partition(id.into())),
            1 => {
                let known = hashes(0, *at as u64);
                let page = Page { from: -1, upto: *at - 1, hashes: &known, age: 9, window: 3600 };
                cache.fill(partition(id.into()), page, now);
            }
            _ => {
                cache.ask(partition(id.into()), &hashes(random, 1), now);
                cache.extend(partition(id.into()), commit(*at, &hashes(*at as u64, count)), now);
                *at += count as i64;
            }
        }
        assert!(cache.bytes() <= cache.budget(), "step {step}: {}", cache.bytes());
        if step % 64 == 0 {
            assert_eq!(cache.bytes(), recount(&cache), "step {step}");
        }
    }
    assert_eq!(cache.bytes(), recount(&cache));
    assert!(cache.stats().evicted > 0);
    cache.clear();
    assert_eq!(cache.bytes(), recount(&cache));
}

/// The memory that the product promises: five bytes a hash where there are many.
#[test]
fn a_million_hashes_of_one_partition_take_five_bytes_each() {
    let mut cache = DedupCache::new(64 << 20);
    for batch in 0..10_000 {
        cache.extend(partition(1), commit(batch * 100, &hashes(batch as u64 * 100, 100)), Tick(100));
    }
    let each = cache.bytes() as f64 / 1e6;
    assert!(each < 5.3, "{each} bytes a hash");
    assert_eq!(
        cache.ask(partition(1), &hashes(1 << 40, 1), Tick(100)),
        Coverage { from: -1, upto: 999_999, maybe: None, shared: false }
    );
    let (above, upto) = cache.ask(partition(1), &hashes(500_000, 1), Tick(100)).maybe.unwrap();
    assert!(above < 500_000 && 500_000 <= upto && upto - above <= 4096, "({above}, {upto}]");
}

/// And about 120 a partition where there are few.
#[test]
fn a_hundred_thousand_small_partitions_take_little() {
    let mut cache = DedupCache::new(64 << 20);
    for round in 0..3 {
        for id in 0..100_000 {
            cache.extend(partition(id), commit(round, &hashes(round as u64, 1)), Tick(100));
        }
    }
    assert_eq!(cache.stats().partitions, 100_000);
    let each = cache.bytes() as f64 / 1e5;
    println!("{each} bytes a partition of 3 hashes");
    // 16 of them are the slots.
    assert!(each < 144.0, "{each} bytes a partition");
}

#[test]
fn the_least_recently_used_partition_goes_first_and_its_oldest_hashes_before_the_rest() {
    let mut cache = DedupCache::new(200_000);
    for id in [1, 2] {
        let many = hashes(0, 15_000);
        cache.extend(partition(id), commit(0, &many), Tick(100));
    }
    assert_eq!(cache.ask(partition(1), &hashes(1 << 40, 1), Tick(100)).from, -1);
    // 1 was used last, so 2 gives way.
    cache.extend(partition(3), commit(0, &hashes(0, 12_000)), Tick(100));
    assert_eq!(cache.ask(partition(1), &hashes(1 << 40, 1), Tick(100)).from, -1);
    let two = cache.ask(partition(2), &hashes(1 << 40, 1), Tick(100));
    assert!(two.from > 0 && two.upto == 14_999, "{two:?}");
}

#[test]
fn what_is_older_than_the_window_is_dropped_and_so_is_an_idle_partition() {
    let mut cache = DedupCache::new(1 << 20);
    cache.extend(partition(1), commit(0, &hashes(0, 40)), Tick(1_000));
    cache.extend(partition(1), commit(40, &hashes(40, 40)), Tick(3_000));
    cache.extend(partition(1), commit(80, &hashes(80, 40)), Tick(5_000));
    let before = cache.ask(partition(1), &hashes(0, 1), Tick(5_050));
    assert_eq!((before.from, before.upto), (-1, 119));
    assert!(before.maybe.is_some());
    let after = cache.ask(partition(1), &hashes(0, 1), Tick(5_120));
    assert!(after.from >= 39 && after.upto == 119 && after.maybe.is_none(), "{after:?}");
    cache.extend(partition(2), commit(0, &hashes(0, 1)), Tick(60_000));
    assert!(!cache.knows(partition(1)));
}

#[test]
fn a_gap_is_healed_by_what_lies_before_the_commit_and_forgotten_without_it() {
    let mut cache = DedupCache::new(1 << 20);
    cache.extend(partition(1), commit(0, &hashes(0, 3)), Tick(100));
    let foreign = hashes(3, 5);
    let healed = Commit { before: Some(Before { from: 2, hashes: &foreign }), ..commit(8, &[9; 16]) };
    cache.extend(partition(1), healed, Tick(100));
    assert_eq!(
        cache.ask(partition(1), &hashes(5, 1), Tick(100)),
        Coverage { from: -1, upto: 8, maybe: Some((4, 5)), shared: true }
    );
    // One hash of the gap is missing.
    let short = Commit { before: Some(Before { from: 8, hashes: &[1; 32] }), ..commit(12, &[9; 16]) };
    cache.extend(partition(1), short, Tick(100));
    assert!(!cache.knows(partition(1)));
}

#[test]
fn the_books_of_an_entry_are_small() {
    assert_eq!(size_of::<Option<Entry>>(), 96);
}
