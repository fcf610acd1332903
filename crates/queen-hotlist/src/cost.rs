//! Costs in elementary steps: the same for ten partitions and for a hundred thousand.

use std::time::Duration;

use queen_types::{Group, PartitionId, PartitionName, Uuid};

use crate::{Deferral, HotQueue, Millis, Options, Release, RingId, Verdict, work};

const MARKS: usize = 1_000_000;

struct Bed {
    queue: HotQueue,
    ring: RingId,
    partitions: Vec<(PartitionId, PartitionName)>,
}

fn bed(partitions: usize, deferral: Deferral) -> Bed {
    let mut queue = HotQueue::new(&Options::default(), deferral, 1, Millis(0));
    let ring = queue.ring(&Group::queue_mode(), Millis(0));
    let named = |n: usize| {
        let id = (n as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        (PartitionId(Uuid::from_u128(id)), PartitionName::new(format!("{n}")).unwrap())
    };
    let partitions = (0..partitions).map(named).collect();
    work::taken();
    Bed { queue, ring, partitions }
}

fn mark_all(bed: &mut Bed, rounds: usize, mut now: impl FnMut(usize) -> u64) -> u64 {
    work::taken();
    for n in 0..rounds {
        // A stride without a common divisor meets the partitions in an order of its own.
        let (id, name) = &bed.partitions[n * 7_919 % bed.partitions.len()];
        bed.queue.mark(*id, name, 1, Millis(now(n)));
    }
    work::taken()
}

#[test]
fn a_million_marks_cost_the_same_whatever_the_number_of_partitions() {
    let delayed = Deferral { delayed: Duration::from_secs(5), ..Deferral::default() };
    let window = Deferral { window: Duration::from_secs(5), ..Deferral::default() };
    let plain = Deferral::default();
    for (deferral, partitions) in [(plain, 10), (plain, 100_000), (delayed, 100_000), (window, 100_000)] {
        let mut bed = bed(partitions, deferral);
        let steps = mark_all(&mut bed, MARKS, |n| n as u64 / 1_000);
        // One look-up each, one link for what was idle.
        assert!(steps < MARKS as u64 * 3 / 2, "{deferral:?} {partitions}: {steps} steps");
    }
}

#[test]
fn a_cycle_costs_the_same_whatever_the_number_of_partitions() {
    for partitions in [10, 100_000] {
        let mut bed = bed(partitions, Deferral::default());
        mark_all(&mut bed, partitions, |_| 0);
        let cycles = 100_000;
        for n in 0..cycles {
            let now = Millis(n / 100);
            let mut checkout = bed.queue.checkout(bed.ring, 1, 1, now).unwrap();
            checkout.note(0, Verdict::Took { lease: Duration::from_secs(60), left: 1 });
            let (claim, id) = (checkout.claim(), checkout.candidates()[0].partition);
            bed.queue.checkin(checkout, now);
            bed.queue.released(bed.ring, id, Some(claim), Release::Covered, now);
        }
        let steps = work::taken();
        assert!(steps < cycles * 8, "{partitions}: {steps} steps");
    }
}

#[test]
fn a_tick_costs_what_it_promotes_and_nothing_when_nothing_is_due() {
    let mut bed = bed(100_000, Deferral { delayed: Duration::from_secs(60), ..Deferral::default() });
    mark_all(&mut bed, 100_000, |n| n as u64 / 10);
    work::taken();
    // Every 50 ms through the time in which nothing is due, parked entries move down the wheel and no more.
    for now in (10_000..60_000).step_by(50) {
        assert_eq!(bed.queue.tick(Millis(now)), 0);
    }
    let waiting = work::taken();
    assert!(waiting < 400_000, "{waiting} steps while nothing was due");
    let mut promoted = 0;
    for now in (60_000..71_000).step_by(50) {
        promoted += bed.queue.tick(Millis(now));
    }
    assert_eq!((promoted, bed.queue.next_due()), (100_000, None));
    let steps = work::taken();
    assert!(steps < 100_000 * 10, "{steps} steps for 100,000 promotions");
}

#[test]
fn removing_what_is_parked_leaves_no_garbage_behind() {
    let mut bed = bed(1, Deferral::default());
    let mut settled = 0;
    for now in 0..50_000 {
        mark_all(&mut bed, 1, |_| now);
        let mut checkout = bed.queue.checkout(bed.ring, 1, 1, Millis(now)).unwrap();
        checkout.note(0, Verdict::Took { lease: Duration::from_secs(300), left: 0 });
        let (claim, id) = (checkout.claim(), checkout.candidates()[0].partition);
        bed.queue.checkin(checkout, Millis(now));
        bed.queue.released(bed.ring, id, Some(claim), Release::Covered, Millis(now));
        if now == 1_000 {
            settled = bed.queue.memory_bytes();
        }
    }
    assert!(bed.queue.is_idle());
    // A level or two of slots, as time needs more digits.
    assert!(bed.queue.memory_bytes() <= settled + 256, "{} after {settled}", bed.queue.memory_bytes());
}
