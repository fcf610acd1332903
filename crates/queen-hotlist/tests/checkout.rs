//! Checkouts: what they take, in which order, and that they end once.

mod common;

use std::time::Duration;

use common::{Bed, PLAIN, delayed, group, id, ms, name, partitions, window};
use queen_hotlist::{Deferral, HotQueue, Millis, Options, Release, State, Verdict, Wake};
use queen_types::PartitionName;

const LEASE: Verdict = Verdict::Took { lease: Duration::from_secs(60), left: 0 };

#[test]
fn longest_ready_first_until_the_counts_cover_the_batch() {
    let mut bed = Bed::new(PLAIN);
    for n in 1..=5 {
        bed.mark(n, 4).pass(1);
    }
    assert_eq!(bed.queue.ring_stats(bed.ring).unwrap().ready_messages, 20);
    let first = bed.take(64, 10);
    assert_eq!(partitions(&first), [1, 2, 3]);
    let second = bed.take(64, 1);
    assert_eq!(partitions(&second), [4]);
    let third = bed.take(0, 1_000);
    assert_eq!(partitions(&third), [5]);
    assert!(bed.queue.checkout(bed.ring, 64, 10, bed.now).is_none());
    assert_eq!(bed.queue.ring_stats(bed.ring).unwrap().ready_messages, 0);
    bed.end(first).end(second).end(third);
}

#[test]
fn the_number_of_partitions_is_bounded_where_counts_are_unknown() {
    let mut bed = Bed::new(PLAIN);
    for n in 1..=5 {
        bed.reseed(n);
    }
    let checkout = bed.take(3, 1);
    assert_eq!(partitions(&checkout), [1, 2, 3]);
    bed.end(checkout);
}

#[test]
fn who_was_not_evaluated_keeps_its_turn() {
    let mut bed = Bed::new(PLAIN);
    for n in 1..=4 {
        bed.mark(n, 1);
    }
    // A busy partition whose consumer takes all of every batch must not starve the others.
    let mut checkout = bed.take(3, 10);
    checkout.note(0, Verdict::TookAutoAck { left: 1_000 });
    bed.end(checkout);
    let checkout = bed.take(64, 10_000);
    assert_eq!(partitions(&checkout), [2, 3, 4, 1]);
    bed.end(checkout);
}

#[test]
fn a_dropped_pop_gives_everything_back_in_order_and_wakes_as_many() {
    let mut bed = Bed::new(PLAIN);
    for n in 1..=4 {
        bed.mark(n, 1);
    }
    bed.wakes();
    let checkout = bed.take(3, 10);
    bed.end(checkout);
    assert_eq!(bed.wakes(), 3);
    let checkout = bed.take(64, 10);
    assert_eq!(partitions(&checkout), [1, 2, 3, 4]);
    bed.end(checkout);
}

#[test]
fn a_reclaimed_entry_ignores_its_former_checkout() {
    let mut bed = Bed::new(PLAIN);
    bed.mark(1, 1).mark(2, 1);
    let mut slow = bed.take(1, 1);
    bed.reseed(1);
    // Order: 2 was ready, 1 came back behind it.
    let mut other = bed.take(2, 100);
    assert_eq!(partitions(&other), [2, 1]);
    slow.note(0, Verdict::Empty { hidden: false });
    assert_eq!(bed.queue.checkin(slow, bed.now), 1);
    assert_eq!(bed.state(1), State::Inflight);
    other.note_partition(id(1), LEASE);
    assert!(!other.note_partition(id(9), LEASE) && !other.note(7, LEASE));
    bed.end(other);
    assert_eq!((bed.state(1), bed.state(2)), (State::Wheel, State::Ready));
}

#[test]
fn a_checkout_of_a_ring_that_was_replaced_comes_to_nothing() {
    let mut bed = Bed::new(PLAIN);
    bed.mark(1, 1);
    let mut old = bed.take(1, 1);
    assert!(bed.queue.drop_ring(&group("g")) && !bed.queue.drop_ring(&group("g")));
    assert!(!bed.queue.has(bed.ring));
    let fresh = bed.queue.ring(&group("g"), bed.now);
    assert_ne!(fresh, bed.ring);
    bed.queue.mark(id(1), &name(1), 1, bed.now);
    let taken = bed.queue.checkout(fresh, 1, 1, bed.now).unwrap();
    old.note(0, Verdict::Empty { hidden: false });
    assert_eq!(bed.queue.checkin(old, bed.now), 1);
    assert_eq!(bed.queue.entry(fresh, id(1)).unwrap().state, State::Inflight);
    assert!(bed.queue.checkout(bed.ring, 1, 1, bed.now).is_none());
    assert!(!bed.queue.released(bed.ring, id(1), None, Release::Open, bed.now));
    assert!(!bed.queue.reseed_row(bed.ring, id(1), &name(1), bed.now));
    assert_eq!(bed.queue.checkin(taken, bed.now), 0);
}

#[test]
fn a_checkout_means_nothing_to_another_hot_list() {
    let mut a = HotQueue::new(&Options::default(), PLAIN, 1, Millis(0));
    let mut b = HotQueue::new(&Options::default(), PLAIN, 2, Millis(0));
    let (ring_a, ring_b) = (a.ring(&group("g"), Millis(0)), b.ring(&group("g"), Millis(0)));
    for queue in [&mut a, &mut b] {
        queue.mark(id(1), &name(1), 1, Millis(0));
    }
    let from_a = a.checkout(ring_a, 1, 1, Millis(0)).unwrap();
    let from_b = b.checkout(ring_b, 1, 1, Millis(0)).unwrap();
    assert_eq!(b.checkin(from_a, Millis(0)), 1);
    assert_eq!(b.checkin(from_b, Millis(0)), 0);
}

#[test]
fn a_forgotten_partition_leaves_every_ring_and_its_index_is_used_again() {
    let mut bed = Bed::new(PLAIN);
    bed.mark(1, 1).mark(2, 1).mark(3, 1);
    bed.claim(2, LEASE);
    let mut flying = bed.take(1, 1);
    assert_eq!(partitions(&flying), [1]);
    for n in 1..=3 {
        assert!(bed.queue.forget_partition(id(n)));
        assert!(!bed.queue.forget_partition(id(n)));
    }
    assert!(bed.queue.is_idle());
    assert_eq!(bed.queue.entry(bed.ring, id(1)), None);
    // All indexes go to new partitions, which take nothing over.
    bed.mark(4, 1).mark(5, 1).mark(6, 1);
    let mut taken = bed.take(3, 100);
    flying.note(0, LEASE);
    assert_eq!(bed.queue.checkin(flying, bed.now), 1);
    assert_eq!(bed.queue.stats().inflight, 3);
    taken.note(1, Verdict::Empty { hidden: false });
    bed.end(taken);
    assert_eq!((bed.state(4), bed.state(5), bed.state(6)), (State::Ready, State::Idle, State::Ready));
}

#[test]
fn one_named_partition_can_be_taken_unless_it_is_in_flight() {
    let mut bed = Bed::new(PLAIN);
    bed.mark(1, 1).claim(1, LEASE);
    let checkout = bed.queue.checkout_partition(bed.ring, id(1), bed.now).unwrap();
    assert!(bed.queue.checkout_partition(bed.ring, id(1), bed.now).is_none());
    assert!(bed.queue.checkout_partition(bed.ring, id(2), bed.now).is_none());
    assert_eq!(bed.queue.stats().wheel, 0);
    bed.end(checkout);
}

#[test]
fn marks_reach_every_ring_and_none_without_consumers() {
    let mut queue = HotQueue::new(&Options::default(), PLAIN, 1, Millis(0));
    queue.mark(id(1), &name(1), 1, Millis(0));
    assert_eq!(queue.stats().partitions, 0);
    let (a, b) = (queue.ring(&group("a"), Millis(0)), queue.ring(&group("b"), Millis(0)));
    assert_eq!(queue.ring(&group("a"), Millis(1)), a);
    assert_eq!((queue.find(&group("b")), queue.find(&group("c"))), (Some(b), None));
    queue.mark(id(1), &name(1), 2, Millis(0));
    queue.mark(id(2), &name(2), 2, Millis(0));
    let mut wakes = Vec::new();
    queue.take_wakes(&mut wakes);
    let wake = |text| Wake { group: group(text), entries: 2 };
    assert_eq!(wakes, [wake("a"), wake("b")]);
    queue.take_wakes(&mut wakes);
    assert_eq!(wakes.len(), 2);
    // Groups do not notice each other.
    let checkout = queue.checkout(a, 9, 9, Millis(0)).unwrap();
    assert_eq!((queue.stats().ready, queue.stats().inflight), (2, 2));
    queue.checkin(checkout, Millis(0));
}

#[test]
fn rings_that_nobody_serves_are_trimmed() {
    let mut queue = HotQueue::new(&Options::default(), PLAIN, 1, Millis(0));
    for (text, at) in [("old", 0), ("flying", 0), ("parked", 0), ("new", 900)] {
        let ring = queue.ring(&group(text), Millis(at));
        if text == "flying" {
            queue.mark(id(1), &name(1), 1, Millis(0));
            // Lost on purpose: it stays in flight.
            let _ = queue.checkout(ring, 1, 1, Millis(0)).unwrap();
        }
    }
    assert_eq!(queue.trim(Millis(500), |group| group.as_str() == "parked"), 1);
    assert_eq!(queue.find(&group("old")), None);
    assert_eq!(queue.stats().rings, 3);
    queue.clear();
    assert_eq!((queue.stats().rings, queue.stats().partitions, queue.is_idle()), (0, 0, true));
    assert_eq!(queue.memory_bytes(), 0);
}

#[test]
fn time_is_asked_for_only_while_something_is_parked() {
    let mut bed = Bed::new(delayed(700));
    assert_eq!(bed.queue.next_due(), None);
    bed.mark(1, 1);
    let mut wakes = 0;
    let start = bed.now;
    while let Some(due) = bed.queue.next_due() {
        bed.now = due;
        bed.queue.tick(due);
        wakes += 1;
    }
    assert_eq!((bed.now.since(start), bed.state(1)), (ms(1_000), State::Ready));
    assert!(wakes <= 4, "{wakes} ticks for one parked entry");
    assert_eq!(bed.queue.tick(Millis(1 << 40)), 0);
}

#[test]
fn other_waiters_are_woken_for_what_a_pop_promotes_and_leaves() {
    let mut bed = Bed::new(delayed(100));
    for n in 1..=5 {
        bed.mark(n, 1);
    }
    bed.pass(400);
    let checkout = bed.take(2, 100);
    assert_eq!(bed.wakes(), 3);
    bed.end(checkout);
}

#[test]
fn shorter_deferral_lets_go_of_what_is_parked_for_it() {
    let mut bed = Bed::new(delayed(600_000));
    bed.mark(1, 1).mark(2, 1);
    bed.claim(2, LEASE);
    bed.queue.set_deferral(Deferral { delayed: ms(700_000), ..PLAIN }, bed.now);
    assert_eq!(bed.state(1), State::Wheel);
    bed.queue.set_deferral(window(1_000), bed.now);
    assert_eq!((bed.state(1), bed.state(2), bed.wakes()), (State::Ready, State::Wheel, 1));
    assert_eq!(bed.queue.deferral(), window(1_000));
}

#[test]
fn figures() {
    let mut bed = Bed::new(PLAIN);
    bed.mark(1, 1).pass(3).mark(2, 1).mark(3, 1).mark(4, 1);
    bed.claim(3, LEASE);
    let checkout = bed.queue.checkout_partition(bed.ring, id(4), bed.now).unwrap();
    let stats = bed.queue.stats();
    assert_eq!((stats.rings, stats.partitions), (1, 4));
    assert_eq!((stats.ready, stats.wheel, stats.inflight), (2, 1, 1));
    assert_eq!(stats.oldest_ready, Some(Millis(bed.now.0 - 3)));
    assert_eq!(bed.queue.touched_at(), bed.now);
    bed.end(checkout);
}

#[test]
fn a_tag_comes_back_with_the_next_checkout_of_its_ring_alone() {
    let mut queue = HotQueue::new(&Options::default(), Deferral::default(), 1, Millis(0));
    let (one, other) = (queue.ring(&group("a"), Millis(0)), queue.ring(&group("b"), Millis(0)));
    assert!(!queue.set_tag(one, id(1), 7), "unknown partition");
    queue.mark(id(1), &PartitionName::default(), 1, Millis(0));
    assert!(queue.set_tag(one, id(1), 7));
    let tags =
        |queue: &mut HotQueue, ring| queue.checkout(ring, 1, 1, Millis(1)).map(|c| c.candidates()[0].tag);
    assert_eq!((tags(&mut queue, one), tags(&mut queue, other)), (Some(7), Some(0)));
    assert!(queue.forget_partition(id(1)));
    queue.mark(id(1), &PartitionName::default(), 1, Millis(2));
    assert_eq!(tags(&mut queue, one), Some(0));
}

#[test]
fn a_walk_tags_what_has_no_tag() {
    let mut queue = HotQueue::new(&Options::default(), Deferral::default(), 1, Millis(0));
    let ring = queue.ring(&group("a"), Millis(0));
    for n in 1..=2 {
        assert!(queue.reseed_row(ring, id(n), &PartitionName::default(), Millis(0)));
    }
    assert!(queue.set_tag(ring, id(1), 7));
    for n in 1..=2 {
        queue.estimate(ring, id(n), 1, 9);
    }
    let checkout = queue.checkout(ring, 2, 2, Millis(1)).unwrap();
    let tags: Vec<u64> = checkout.candidates().iter().map(|candidate| candidate.tag).collect();
    assert_eq!(tags, [7, 9]);
    queue.checkin(checkout, Millis(1));
}

#[test]
fn what_a_walk_has_counted_and_what_a_budget_left_limit_the_next_checkout() {
    let mut queue = HotQueue::new(&Options::default(), Deferral::default(), 1, Millis(0));
    let ring = queue.ring(&group("a"), Millis(0));
    for n in 1..=3 {
        assert!(queue.reseed_row(ring, id(n), &PartitionName::default(), Millis(0)));
        queue.estimate(ring, id(n), 100, 0);
        queue.estimate(ring, id(n), 7, 0);
    }
    let mut checkout = queue.checkout(ring, 10, 150, Millis(1)).unwrap();
    assert_eq!(checkout.candidates().len(), 2, "100 + 100 cover 150");
    assert!(checkout.note(0, Verdict::Took { lease: ms(1000), left: 0 }));
    assert!(checkout.note(1, Verdict::Pending { left: 60 }));
    assert_eq!(queue.checkin(checkout, Millis(2)), 0);
    let checkout = queue.checkout(ring, 10, 50, Millis(3)).unwrap();
    assert_eq!(
        checkout.candidates().iter().map(|c| c.partition).collect::<Vec<_>>(),
        [id(2)],
        "it kept its turn"
    );
    assert_eq!(queue.checkin(checkout, Millis(4)), 0);
}
