//! Cost of the hot list: `cargo bench -p queen-hotlist --bench ring`.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use queen_hotlist::{Deferral, HotQueue, Millis, Options, Release, RingId, Verdict};
use queen_types::{Group, PartitionId, PartitionName, Uuid};

const SIZES: [usize; 3] = [10, 1_000, 100_000];

struct Bed {
    queue: HotQueue,
    rings: Vec<RingId>,
    partitions: Vec<(PartitionId, PartitionName)>,
}

/// Known partitions, none of them tracked.
fn bed(partitions: usize, groups: usize, deferral: Deferral) -> Bed {
    let mut queue = HotQueue::new(&Options::default(), deferral, 1, Millis(0));
    let group = |n| Group::new(format!("group-{n}")).expect("a short name");
    let rings: Vec<RingId> = (0..groups).map(|n| queue.ring(&group(n), Millis(0))).collect();
    let partitions: Vec<_> = (0..partitions)
        .map(|n| {
            let name = PartitionName::new(format!("partition-{n}")).expect("a short name");
            (
                PartitionId(Uuid::from_u128(
                    (n as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835),
                )),
                name,
            )
        })
        .collect();
    for (id, name) in &partitions {
        queue.mark(*id, name, 1, Millis(0));
    }
    for ring in &rings {
        settle_all(&mut queue, *ring, Verdict::Empty { hidden: false }, Millis(0));
    }
    Bed { queue, rings, partitions }
}

fn settle_all(queue: &mut HotQueue, ring: RingId, verdict: Verdict, now: Millis) {
    while let Some(mut checkout) = queue.checkout(ring, 64, u64::MAX, now) {
        for position in 0..checkout.candidates().len() {
            checkout.note(position, verdict);
        }
        queue.checkin(checkout, now);
    }
}

fn mark(c: &mut Criterion) {
    let mut group = c.benchmark_group("mark");
    group.throughput(Throughput::Elements(1));
    for size in SIZES {
        for groups in [1, 4] {
            let Bed { mut queue, partitions, .. } = bed(size, groups, Deferral::default());
            // A stride that meets every partition, so that the next is not in the cache by chance.
            let mut at = 0;
            group.bench_function(format!("{size}/groups-{groups}"), |b| {
                b.iter(|| {
                    at = (at + 7_919) % partitions.len();
                    let (id, name) = &partitions[at];
                    queue.mark(black_box(*id), name, 1, Millis(1));
                });
            });
        }
    }
    group.finish();
}

/// One message through a ring: mark, checkout, checkin under a lease, ack.
fn cycle(c: &mut Criterion) {
    let mut group = c.benchmark_group("mark_checkout_checkin_ack");
    group.throughput(Throughput::Elements(1));
    for size in SIZES {
        let Bed { mut queue, rings, partitions } = bed(size, 1, Deferral::default());
        let (mut at, mut now) = (0, 0);
        group.bench_function(format!("{size}"), |b| {
            b.iter(|| {
                at = (at + 7_919) % partitions.len();
                now += 1;
                let (id, name) = &partitions[at];
                queue.mark(*id, name, 1, Millis(now));
                let mut checkout = queue.checkout(rings[0], 2, 10, Millis(now)).expect("marked");
                checkout.note(0, Verdict::Took { lease: Duration::from_secs(60), left: 0 });
                let claim = checkout.claim();
                queue.checkin(checkout, Millis(now));
                queue.released(rings[0], *id, Some(claim), Release::Covered, Millis(now));
            });
        });
        assert!(queue.is_idle());
    }
    group.finish();
}

/// Every partition's lease comes due at once.
fn tick(c: &mut Criterion) {
    let mut group = c.benchmark_group("tick");
    group.sample_size(20);
    for size in SIZES {
        group.throughput(Throughput::Elements(size as u64));
        group.bench_function(format!("{size}"), |b| {
            let parked = || {
                let Bed { mut queue, rings, partitions } = bed(size, 1, Deferral::default());
                partitions.iter().for_each(|(id, name)| queue.mark(*id, name, 1, Millis(7)));
                settle_all(
                    &mut queue,
                    rings[0],
                    Verdict::Leased { rest: Duration::from_secs(60) },
                    Millis(7),
                );
                queue
            };
            let promote = |mut queue: HotQueue| {
                assert_eq!(queue.tick(Millis(1_007)), size);
                queue
            };
            b.iter_batched(parked, promote, BatchSize::LargeInput);
        });
    }
    group.finish();
}

criterion_group!(benches, mark, cycle, tick);
criterion_main!(benches);
