//! The event table of the crate's documentation, row by row.

mod common;

use std::time::Duration;

use common::{Bed, PLAIN, delayed, ms, window};
use queen_hotlist::{ClaimId, Deferral, Release, State, Verdict};

const LEASE: Verdict = Verdict::Took { lease: Duration::from_secs(60), left: 0 };
const EMPTY: Verdict = Verdict::Empty { hidden: true };

/// A bed whose partition 1 is known and idle.
fn idle(deferral: Deferral) -> Bed {
    let mut bed = Bed::new(deferral);
    bed.mark(1, 1).claim(1, Verdict::Empty { hidden: false });
    assert_eq!((bed.state(1), bed.entry(1).count), (State::Idle, 0));
    bed.wakes();
    bed
}

// === mark ===

#[test]
fn mark_of_idle() {
    let mut plain = idle(PLAIN);
    let epoch = plain.entry(1).epoch;
    plain.pass(5).mark(1, 3);
    let entry = plain.entry(1);
    assert_eq!((entry.state, entry.at, entry.count), (State::Ready, plain.now, 3));
    assert_eq!((entry.epoch, entry.pending_since), (epoch + 1, plain.now));
    assert_eq!(plain.wakes(), 1);

    let mut held = idle(delayed(5_000));
    held.mark(1, 500);
    assert_eq!((held.parked_for(1), held.wakes()), (ms(5_300), 0));

    let mut windowed = idle(window(2_000));
    windowed.mark(1, 99);
    assert_eq!((windowed.parked_for(1), windowed.wakes()), (ms(2_000), 0));

    let mut gathered = idle(window(2_000));
    gathered.mark(1, 100);
    assert_eq!((gathered.state(1), gathered.wakes()), (State::Ready, 1));

    // Delay wins over window.
    let mut both = idle(Deferral { delayed: ms(700), window: ms(9_000) });
    both.mark(1, 1_000);
    assert_eq!(both.parked_for(1), ms(1_000));
}

#[test]
fn mark_of_ready() {
    let mut bed = idle(PLAIN);
    bed.mark(1, 3);
    let (since, epoch) = (bed.now, bed.entry(1).epoch);
    bed.pass(10).mark(1, 4);
    let entry = bed.entry(1);
    assert_eq!((entry.state, entry.at, entry.count, entry.epoch), (State::Ready, since, 7, epoch + 1));
    assert_eq!((entry.pending_since, bed.wakes()), (bed.now, 1));
}

#[test]
fn mark_of_parked_on_a_plain_queue() {
    let mut bed = idle(PLAIN);
    bed.mark(1, 1).claim(1, LEASE).wakes();
    bed.pass(699).mark(1, 1);
    assert_eq!((bed.parked_for(1), bed.wakes()), (ms(301), 0));
    bed.pass(1).mark(1, 1);
    assert_eq!((bed.state(1), bed.entry(1).count, bed.wakes()), (State::Ready, 2, 1));
}

#[test]
fn mark_of_parked_on_a_window_queue() {
    let mut bed = idle(window(2_000));
    bed.mark(1, 60).pass(100).mark(1, 39);
    assert_eq!(bed.parked_for(1), ms(1_900));
    bed.mark(1, 1);
    assert_eq!((bed.state(1), bed.wakes()), (State::Ready, 1));

    // Parked for a lease, a gathered batch waits until the lease's core has passed.
    bed.claim(1, LEASE).mark(1, 500);
    assert_eq!(bed.parked_for(1), ms(1_000));
    bed.pass(700).mark(1, 1);
    assert_eq!(bed.state(1), State::Ready);
}

#[test]
fn mark_of_parked_on_a_delayed_queue() {
    let mut bed = idle(delayed(1_000));
    bed.mark(1, 1).pass(1_299).mark(1, 1_000);
    assert_eq!((bed.parked_for(1), bed.wakes()), (ms(1), 0));
}

#[test]
fn mark_in_flight() {
    let mut bed = idle(PLAIN);
    bed.mark(1, 1);
    let checkout = bed.take(1, 10);
    let epoch = bed.entry(1).epoch;
    bed.pass(3).mark(1, 5);
    let entry = bed.entry(1);
    assert_eq!((entry.state, entry.epoch, entry.count), (State::Inflight, epoch + 1, 6));
    assert_eq!(entry.pending_since, bed.now);
    bed.end(checkout);
}

// === checkout ===

#[test]
fn checkout_takes_ready_entries_and_what_is_due() {
    let mut bed = idle(PLAIN);
    bed.mark(1, 1).claim(1, LEASE).wakes();
    assert!(bed.entry(1).drained);
    assert!(bed.queue.checkout(bed.ring, 5, 10, bed.now).is_none());
    bed.pass(999);
    assert!(bed.queue.checkout(bed.ring, 5, 10, bed.now).is_none());
    bed.pass(1);
    let checkout = bed.take(5, 10);
    assert_eq!((bed.state(1), bed.entry(1).drained), (State::Inflight, false));
    assert_eq!(bed.wakes(), 0, "who takes what came due needs no other");
    bed.end(checkout);
}

// === checkin ===

#[test]
fn took_under_a_lease() {
    let mut bed = idle(PLAIN);
    bed.mark(1, 5).claim(1, LEASE);
    let entry = bed.entry(1);
    assert_eq!((bed.parked_for(1), entry.count, entry.drained), (ms(1_000), 0, true));

    // A lease shorter than the cap.
    bed.pass(1_000).claim(1, Verdict::Took { lease: ms(400), left: 0 });
    assert_eq!(bed.parked_for(1), ms(700));

    // Not the tail: what is left is known.
    bed.pass(1_000).claim(1, Verdict::Took { lease: ms(400), left: 7 });
    assert_eq!((bed.entry(1).count, bed.entry(1).drained), (7, false));
}

#[test]
fn took_under_a_lease_while_marks_came() {
    let mut bed = idle(PLAIN);
    bed.mark(1, 5);
    let mut checkout = bed.take(1, 10);
    bed.mark(1, 2);
    checkout.note(0, LEASE);
    bed.end(checkout);
    assert_eq!((bed.parked_for(1), bed.entry(1).count), (ms(1_000), 2));
}

#[test]
fn took_never_counts_a_mark_away_by_saturation() {
    let mut bed = idle(PLAIN);
    bed.mark(1, 1_000_000);
    let mut checkout = bed.take(1, 10);
    bed.mark(1, 1);
    checkout.note(0, LEASE);
    bed.end(checkout).released(1, Release::Covered);
    assert_eq!((bed.state(1), bed.entry(1).count), (State::Ready, 1));
}

#[test]
fn took_while_a_lease_ended() {
    let after_ack_by = |who: fn(&Bed, &queen_hotlist::Checkout) -> Option<ClaimId>| {
        let mut bed = idle(PLAIN);
        bed.mark(1, 5);
        let mut checkout = bed.take(1, 10);
        let claim = who(&bed, &checkout);
        bed.released_by(claim, 1, Release::Open);
        checkout.note(0, LEASE);
        bed.end(checkout).state(1)
    };
    assert_eq!(after_ack_by(|_, checkout| Some(checkout.claim())), State::Ready, "acked before the checkin");
    assert_eq!(after_ack_by(|bed, _| bed.claim), State::Wheel, "the lease before, announced late");
    assert_eq!(after_ack_by(|_, _| None), State::Ready, "nobody knows which");
}

#[test]
fn took_with_auto_ack() {
    let took = |left| Verdict::TookAutoAck { left };
    let mut bed = idle(PLAIN);
    bed.mark(1, 5).claim(1, took(0));
    assert_eq!((bed.state(1), bed.entry(1).count), (State::Idle, 0));
    bed.mark(1, 5).wakes();
    bed.claim(1, took(3));
    assert_eq!((bed.state(1), bed.entry(1).count, bed.wakes()), (State::Ready, 3, 1));

    let mut checkout = bed.take(1, 10);
    bed.mark(1, 1);
    checkout.note(0, took(0));
    bed.end(checkout);
    assert_eq!((bed.state(1), bed.entry(1).count), (State::Ready, 1));

    let mut windowed = idle(window(2_000));
    windowed.mark(1, 100).claim(1, took(3));
    assert_eq!(windowed.parked_for(1), ms(2_000));
    windowed.claim(1, took(100));
    assert_eq!(windowed.state(1), State::Ready);

    let mut held = idle(delayed(2_000));
    held.mark(1, 1).claim(1, took(3));
    assert_eq!(held.state(1), State::Ready);
}

#[test]
fn leased_elsewhere() {
    let mut bed = idle(PLAIN);
    bed.mark(1, 5).claim(1, Verdict::Leased { rest: ms(250) });
    assert_eq!((bed.parked_for(1), bed.entry(1).count), (ms(550), 5));
    bed.claim(1, Verdict::Leased { rest: ms(60_000) });
    assert_eq!(bed.parked_for(1), ms(1_000));

    // The lease that the claim met ended before the verdict was known.
    let mut checkout = bed.pass(1_000).take(1, 10);
    bed.released(1, Release::Covered);
    checkout.note(0, Verdict::Leased { rest: ms(60_000) });
    bed.end(checkout);
    assert_eq!(bed.state(1), State::Ready);

    // A mark alone does not end a lease.
    let mut checkout = bed.take(1, 10);
    bed.mark(1, 1);
    checkout.note(0, Verdict::Leased { rest: ms(60_000) });
    bed.end(checkout);
    assert_eq!(bed.parked_for(1), ms(1_000));
}

#[test]
fn empty_on_a_plain_queue() {
    let mut bed = idle(PLAIN);
    bed.mark(1, 5).claim(1, EMPTY);
    assert_eq!((bed.state(1), bed.entry(1).count), (State::Idle, 0));

    bed.mark(1, 5);
    let mut checkout = bed.take(1, 10);
    bed.mark(1, 1).wakes();
    checkout.note(0, EMPTY);
    bed.end(checkout);
    assert_eq!((bed.state(1), bed.wakes()), (State::Ready, 1));
}

#[test]
fn empty_on_a_deferral_queue() {
    for (deferral, probe, patience) in [
        (delayed(5_000), 1_000, 6_600),
        (delayed(200), 200, 1_800),
        (delayed(10), 50, 1_610),
        (window(3_000), 50, 4_600),
    ] {
        let mut bed = idle(deferral);
        bed.mark(1, 1).pass(patience - 1).claim(1, EMPTY);
        assert_eq!(bed.parked_for(1), ms(probe), "{deferral:?}");
        bed.pass(1).claim(1, EMPTY);
        assert_eq!(bed.state(1), State::Idle, "{deferral:?}");
        bed.mark(1, 1).claim(1, Verdict::Empty { hidden: false });
        assert_eq!(bed.state(1), State::Idle, "{deferral:?}");
    }
}

#[test]
fn deferred() {
    let mut bed = idle(window(3_000));
    bed.mark(1, 100).claim(1, Verdict::Deferred { rest: ms(1_234) });
    assert_eq!(bed.parked_for(1), ms(1_234));

    let mut checkout = bed.pass(1_234).take(1, 10);
    bed.mark(1, 1);
    checkout.note(0, Verdict::Deferred { rest: ms(1_000) });
    bed.end(checkout);
    assert_eq!(bed.state(1), State::Ready);

    bed.claim(1, Verdict::Deferred { rest: Duration::ZERO });
    assert_eq!(bed.state(1), State::Ready, "no rest, no park");
}

#[test]
fn not_evaluated() {
    let mut bed = idle(PLAIN);
    bed.mark(1, 5);
    let since = bed.entry(1).at;
    bed.pass(5).wakes();
    let checkout = bed.take(1, 10);
    bed.end(checkout);
    let entry = bed.entry(1);
    assert_eq!((entry.state, entry.count, entry.at, bed.wakes()), (State::Ready, 0, since, 1));
}

// === released ===

#[test]
fn released_when_idle_or_ready() {
    let mut bed = idle(PLAIN);
    bed.released(1, Release::Covered);
    assert_eq!(bed.state(1), State::Idle);
    bed.released(1, Release::Retry { rest: ms(5_000) });
    assert_eq!(bed.parked_for(1), ms(5_000));
    let mut bed = idle(PLAIN);
    bed.released(1, Release::Open);
    assert_eq!((bed.state(1), bed.wakes()), (State::Ready, 1));
    for release in [Release::Covered, Release::Open, Release::Retry { rest: ms(9) }] {
        let before = bed.entry(1);
        bed.pass(1).released(1, release);
        assert_eq!((bed.entry(1), bed.wakes()), (before, 0));
    }
}

#[test]
fn released_when_parked() {
    let leased = |left| {
        let mut bed = idle(PLAIN);
        bed.mark(1, 5).claim(1, Verdict::Took { lease: ms(60_000), left }).wakes();
        bed
    };
    let mut bed = leased(0);
    bed.released(1, Release::Covered);
    assert_eq!((bed.state(1), bed.wakes(), bed.queue.is_idle()), (State::Idle, 0, true));

    let mut bed = leased(1);
    bed.released(1, Release::Covered);
    assert_eq!((bed.state(1), bed.wakes()), (State::Ready, 1));

    let mut bed = leased(0);
    bed.mark(1, 1).released(1, Release::Covered);
    assert_eq!((bed.state(1), bed.wakes()), (State::Ready, 1));

    // Parked without having been drained: by somebody else's lease.
    let mut bed = idle(PLAIN);
    bed.reseed(1).claim(1, Verdict::Leased { rest: ms(60_000) }).wakes();
    bed.released(1, Release::Covered);
    assert_eq!((bed.state(1), bed.wakes()), (State::Ready, 1));

    let mut bed = leased(0);
    bed.released(1, Release::Open);
    assert_eq!((bed.state(1), bed.wakes()), (State::Ready, 1));

    let mut bed = leased(0);
    bed.released_by(None, 1, Release::Retry { rest: ms(5_000) });
    assert_eq!(bed.parked_for(1), ms(5_000));

    let mut bed = leased(0);
    bed.released(1, Release::Retry { rest: ms(5_000) });
    assert_eq!((bed.parked_for(1), bed.wakes()), (ms(5_000), 0));
    bed.pass(5_000);
    assert_eq!((bed.queue.tick(bed.now), bed.state(1), bed.wakes()), (1, State::Ready, 1));
}

#[test]
fn released_in_flight() {
    for release in [Release::Covered, Release::Open, Release::Retry { rest: ms(9) }] {
        let mut bed = idle(PLAIN);
        bed.mark(1, 1);
        let mut checkout = bed.take(1, 10);
        let epoch = bed.entry(1).epoch;
        bed.released(1, release);
        assert_eq!((bed.state(1), bed.entry(1).epoch), (State::Inflight, epoch + 1));
        checkout.note(0, EMPTY);
        bed.end(checkout);
        assert_eq!(bed.state(1), State::Ready);
    }
}

#[test]
fn an_ack_that_is_announced_late_does_not_end_the_next_lease() {
    for release in [Release::Covered, Release::Retry { rest: ms(600_000) }] {
        let mut bed = idle(PLAIN);
        bed.mark(1, 1).claim(1, LEASE);
        let first = bed.claim;
        // Its ack commits, and before that is announced the next message is taken under a lease of its own.
        bed.pass(800).mark(1, 1).claim(1, LEASE);
        bed.released_by(first, 1, release);
        assert_eq!(bed.state(1), State::Ready, "looked at, not taken for done: {release:?}");
    }
    let mut bed = idle(PLAIN);
    bed.mark(1, 1).claim(1, LEASE).released_by(None, 1, Release::Covered);
    assert_eq!(bed.state(1), State::Ready);
}

// === reseed row ===

#[test]
fn reseed_rows() {
    let mut bed = idle(PLAIN);
    bed.reseed(1);
    assert_eq!((bed.state(1), bed.entry(1).count, bed.wakes()), (State::Ready, 0, 1));
    bed.pass(1).reseed(1);
    assert_eq!((bed.entry(1).at, bed.wakes()), (common_since(&bed), 0));
    bed.claim(1, LEASE).reseed(1);
    assert_eq!((bed.state(1), bed.wakes()), (State::Ready, 1));
    let lost = bed.take(1, 1);
    bed.reseed(1);
    assert_eq!((bed.state(1), bed.wakes()), (State::Ready, 1));
    assert_eq!(bed.queue.checkin(lost, bed.now), 1);

    // A delayed queue: soon, since nobody knows how old the messages are.
    let mut held = idle(delayed(600_000));
    held.reseed(1);
    assert_eq!((held.parked_for(1), held.entry(1).pending_since), (ms(1_000), held.now));
    held.pass(10).reseed(1);
    assert_eq!(held.parked_for(1), ms(990));

    // A row that comes while a drained batch is leased may be about more than the batch.
    held.pass(990).claim(1, LEASE).reseed(1).released(1, Release::Covered);
    assert_eq!(held.state(1), State::Ready);

    let mut windowed = idle(window(5_000));
    windowed.reseed(1);
    assert_eq!((windowed.state(1), windowed.entry(1).pending_since), (State::Ready, windowed.now));
}

fn common_since(bed: &Bed) -> queen_hotlist::Millis {
    queen_hotlist::Millis(bed.now.0 - 1)
}
