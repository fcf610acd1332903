//! What a hot list takes, and that marks of known partitions allocate nothing.
#![allow(unsafe_code, reason = "counting allocations takes an allocator")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use common::{PLAIN, delayed, group};
use queen_hotlist::{Deferral, HotQueue, Millis, Options, Release, RingId, Verdict};
use queen_types::{PartitionId, PartitionName, Uuid};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    static HELD: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

fn count(allocations: usize, bytes: isize) {
    // A thread that is going away has nothing to count any more.
    let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + allocations));
    let _ = HELD.try_with(|held| held.set(held.get() + bytes));
}

// SAFETY: every call is passed on to the system's allocator unchanged; counting touches thread-local cells alone, which
// allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(0, -(layout.size() as isize));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, size as isize - layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const GROUPS: usize = 4;

fn id(n: usize) -> PartitionId {
    PartitionId(Uuid::from_u128((n as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)))
}

fn marked(partitions: usize, deferral: Deferral) -> (HotQueue, Vec<RingId>) {
    let mut queue = HotQueue::new(&Options::default(), deferral, 1, Millis(0));
    let rings = (0..GROUPS).map(|n| queue.ring(&group(&format!("group-{n}")), Millis(0))).collect();
    for n in 0..partitions {
        let name = PartitionName::new(format!("partition-{n}")).expect("a short name");
        queue.mark(id(n), &name, 1, Millis(0));
    }
    (queue, rings)
}

#[test]
fn a_hundred_thousand_partitions_times_four_groups_stay_below_25_mib() {
    for deferral in [PLAIN, delayed(60_000)] {
        let before = HELD.get();
        let (queue, _rings) = marked(100_000, deferral);
        let held = (HELD.get() - before) as usize;
        let told = queue.memory_bytes();
        assert!(held < 25 << 20, "{held} bytes held");
        // What the queue tells is what it holds, but for the table of rings.
        assert!(told.abs_diff(held) < 64 * 1024, "told {told}, held {held}");
    }
}

#[test]
fn a_million_partitions_cost_as_much_each() {
    let before = HELD.get();
    let (queue, _rings) = marked(1_000_000, PLAIN);
    let each = (HELD.get() - before) as usize / 1_000_000;
    assert!(each <= 250, "{each} bytes a partition");
    assert_eq!(queue.stats().ready, 4_000_000);
}

#[test]
fn a_queue_with_one_partition_is_small() {
    let before = HELD.get();
    let (mut queue, rings) = marked(1, PLAIN);
    for ring in rings {
        let mut checkout = queue.checkout(ring, 1, 1, Millis(0)).unwrap();
        checkout.note(0, Verdict::Took { lease: Duration::from_secs(60), left: 0 });
        queue.checkin(checkout, Millis(0));
    }
    let held = HELD.get() - before;
    assert!(held < 8 * 1024, "{held} bytes");
}

#[test]
fn marks_ticks_and_releases_of_known_partitions_allocate_nothing() {
    for deferral in [PLAIN, delayed(500)] {
        let (mut queue, rings) = marked(1_000, deferral);
        let names: Vec<PartitionName> =
            (0..1_000).map(|n| PartitionName::new(format!("partition-{n}")).unwrap()).collect();
        let mut wakes = Vec::with_capacity(64);
        let mut now = 0;
        let mut round = |queue: &mut HotQueue| {
            for (n, name) in names.iter().enumerate() {
                queue.mark(id(n), name, 1, Millis(now));
                queue.released(rings[n % GROUPS], id(n), None, Release::Open, Millis(now));
            }
            now += 1_000;
            queue.tick(Millis(now));
            wakes.clear();
            queue.take_wakes(&mut wakes);
        };
        round(&mut queue);
        let before = ALLOCATIONS.get();
        (0..20).for_each(|_| round(&mut queue));
        assert_eq!(ALLOCATIONS.get() - before, 0, "{deferral:?}");
    }
}

#[test]
fn nothing_is_left_of_a_queue_that_was_cleared() {
    let before = HELD.get();
    let (mut queue, _rings) = marked(10_000, PLAIN);
    queue.clear();
    assert!(HELD.get() - before < 1024, "{} bytes", HELD.get() - before);
}
