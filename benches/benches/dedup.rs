//! The memory of stored hashes: what a push pays for it, with a million hashes in one partition, or in a hundred
//! thousand. `cargo bench -p queen-benches --bench dedup`.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use queen_dedup::{Commit, DedupCache, Tick};
use queen_types::{PartitionId, Uuid};

const HASHES: u64 = 1_000_000;
const BATCHES: [u64; 2] = [1, 100];
const WINDOW: u32 = 3600;

fn partition(n: u64) -> PartitionId {
    PartitionId(Uuid::from_u128(u128::from(n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)))
}

fn hashes(first: u64, count: u64) -> Vec<u8> {
    (first..first + count)
        .flat_map(|n| {
            let mixed = u128::from(n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
            (mixed ^ (mixed >> 61)).wrapping_mul(0xD6E8_FEB8_6659_FD93_A5A3_56B9_1234_5677).to_be_bytes()
        })
        .collect()
}

/// A cache of so many partitions that hold the hashes together; and the length of each log.
fn filled(partitions: u64) -> (DedupCache, Vec<u64>) {
    let mut cache = DedupCache::new(256 << 20);
    let each = HASHES / partitions;
    for n in 0..partitions {
        let mut at = 0;
        while at < each {
            let some = (each - at).min(100);
            let bytes = hashes(n << 32 | at, some);
            let commit = Commit { base: at as i64, hashes: &bytes, before: None, window: WINDOW };
            cache.extend(partition(n), commit, Tick(1 << 20));
            at += some;
        }
    }
    (cache, vec![each; partitions as usize])
}

fn ask_and_extend(c: &mut Criterion) {
    for partitions in [1, 100_000] {
        let mut group = c.benchmark_group(format!("dedup/{partitions}-partitions"));
        for batch in BATCHES {
            let (mut cache, mut ends) = filled(partitions);
            let mut next = 1_u64 << 60;
            let mut turn = 0;
            group.throughput(Throughput::Elements(batch));
            group.bench_function(BenchmarkId::new("ask", batch), |b| {
                b.iter_with_setup(
                    || {
                        next += batch;
                        (partition(next.wrapping_mul(7919) % partitions), hashes(next, batch))
                    },
                    |(partition, bytes)| cache.ask(partition, black_box(&bytes), Tick(1 << 20)),
                );
            });
            group.bench_function(BenchmarkId::new("ask-and-extend", batch), |b| {
                b.iter_with_setup(
                    || {
                        next += batch;
                        hashes(next, batch)
                    },
                    |bytes| {
                        let now = Tick(1 << 20);
                        turn = (turn + 7919) % partitions;
                        let end = &mut ends[turn as usize];
                        let said = cache.ask(partition(turn), black_box(&bytes), now);
                        let commit =
                            Commit { base: *end as i64, hashes: &bytes, before: None, window: WINDOW };
                        cache.extend(partition(turn), commit, now);
                        *end += batch;
                        said
                    },
                );
            });
        }
        group.finish();
    }
}

criterion_group!(benches, ask_and_extend);
criterion_main!(benches);
