//! When a ring is walked.

mod common;

use std::time::Duration;

use common::{Bed, PLAIN, group, id};
use queen_hotlist::{Cursor, Millis, Options, PAGE_ROWS, PAGES_MAX, Page, ReseedOptions, WalkEnd, WalkKind};
use queen_types::Timestamp;

const WINDOWED: WalkKind = WalkKind::Windowed { look_back: Duration::from_secs(120) };

fn page(rows: usize, at: i64) -> Page {
    let last = Cursor { last_write_at: Timestamp(at), partition: id(1) };
    Page { rows, last: Some(last), cutoff: Some(Timestamp(at)) }
}

/// Moves to the due time, walks, and answers what was walked.
fn walk(bed: &mut Bed, end: WalkEnd) -> (WalkKind, Option<u32>) {
    bed.now = bed.now.max(bed.queue.walk_due(bed.ring).expect("the ring lives"));
    let walk = bed.queue.start_walk(bed.ring, bed.now).expect("due");
    let kind = walk.kind();
    (kind, bed.queue.end_walk(walk, end, bed.now))
}

#[test]
fn a_new_ring_owes_a_full_walk_then_windowed_ones_with_full_ones_between() {
    let mut bed = Bed::new(PLAIN);
    assert_eq!(bed.queue.walk_due(bed.ring), Some(bed.now));
    let start = bed.now;
    assert_eq!(walk(&mut bed, WalkEnd::Done), (WalkKind::Full, None));
    assert!(bed.queue.start_walk(bed.ring, bed.now).is_none());
    let mut gap = Duration::ZERO;
    let mut windowed = 0;
    loop {
        let before = bed.now;
        let (kind, _) = walk(&mut bed, WalkEnd::Done);
        if kind == WalkKind::Full {
            break;
        }
        assert_eq!(kind, WINDOWED);
        gap = bed.now.since(before);
        assert!(gap >= Duration::from_secs(30) && gap <= Duration::from_secs(45), "{gap:?}");
        windowed += 1;
    }
    let full = bed.now.since(start);
    assert!(full >= Duration::from_secs(300) && full <= Duration::from_secs(360), "{full:?}");
    assert!((6..=12).contains(&windowed), "{windowed}");
    // The phase is fixed: the same share of either span.
    let share = |over: Duration, span: u64| over.as_secs_f64() / Duration::from_secs(span).as_secs_f64();
    let windowed = share(gap - Duration::from_secs(30), 15);
    assert!((windowed - share(full - Duration::from_secs(300), 60)).abs() < 0.01);
}

#[test]
fn rings_have_phases_of_their_own() {
    let mut bed = Bed::new(PLAIN);
    let mut dues: Vec<Millis> = (0..20)
        .map(|n| {
            let ring = bed.queue.ring(&group(&format!("g{n}")), bed.now);
            let walk = bed.queue.start_walk(ring, bed.now).unwrap();
            bed.queue.end_walk(walk, WalkEnd::Done, bed.now);
            bed.queue.walk_due(ring).unwrap()
        })
        .collect();
    assert_eq!(bed.queue.next_walk(), Some((bed.now, bed.ring)));
    dues.sort_unstable();
    dues.dedup();
    assert!(dues.len() >= 18, "{dues:?}");
    assert!(dues[dues.len() - 1].since(dues[0]) > Duration::from_secs(8));
}

#[test]
fn zero_makes_every_walk_a_full_one() {
    let reseed = ReseedOptions { full: Duration::ZERO, ..Default::default() };
    let mut bed = Bed::with(Options { reseed, ..Default::default() }, PLAIN);
    for _ in 0..3 {
        assert_eq!(walk(&mut bed, WalkEnd::Done).0, WalkKind::Full);
        assert!(bed.queue.walk_due(bed.ring).unwrap().since(bed.now) >= Duration::from_secs(30));
    }
}

#[test]
fn a_failed_full_walk_stays_owed_with_a_growing_pause_and_few_warnings() {
    let mut bed = Bed::new(PLAIN);
    let mut warned = Vec::new();
    for _ in 0..20 {
        let (kind, warning) = walk(&mut bed, WalkEnd::Failed);
        assert_eq!(kind, WalkKind::Full);
        warned.extend(warning);
        let pause = bed.queue.walk_due(bed.ring).unwrap().since(bed.now);
        assert!(pause >= Duration::from_secs(2) && pause <= Duration::from_secs(30), "{pause:?}");
    }
    assert_eq!(warned, [3, 4, 8, 16]);
    assert_eq!(walk(&mut bed, WalkEnd::Done).0, WalkKind::Full);
    assert_eq!(walk(&mut bed, WalkEnd::Failed).0, WINDOWED);
    // A failed windowed walk is tried again soon, and is no full one.
    assert_eq!(bed.queue.walk_due(bed.ring).unwrap().since(bed.now), Duration::from_secs(2));
    assert_eq!(walk(&mut bed, WalkEnd::Done).0, WINDOWED);
}

#[test]
fn pages_go_on_until_one_is_short() {
    let mut bed = Bed::new(PLAIN);
    walk(&mut bed, WalkEnd::Done);
    bed.now = bed.queue.walk_due(bed.ring).unwrap();
    let mut walk = bed.queue.start_walk(bed.ring, bed.now).unwrap();
    assert_eq!((walk.cursor(), walk.cutoff(), walk.ring()), (None, None, bed.ring));
    assert!(bed.queue.walk_page(&mut walk, page(PAGE_ROWS, 5), bed.now));
    assert!(bed.queue.walk_page(&mut walk, page(PAGE_ROWS, 9), bed.now));
    assert_eq!(walk.cursor().unwrap().last_write_at, Timestamp(9));
    assert_eq!(walk.cutoff(), Some(Timestamp(5)), "the first page fixes it");
    assert!(!bed.queue.walk_page(&mut walk, Page { rows: 0, last: None, cutoff: None }, bed.now));
    assert_eq!(walk.cursor().unwrap().last_write_at, Timestamp(9));
    assert_eq!(bed.queue.end_walk(walk, WalkEnd::Done, bed.now), None);
}

#[test]
fn a_full_walk_cut_short_goes_on_where_it_stopped() {
    let mut bed = Bed::new(PLAIN);
    let mut walk = bed.queue.start_walk(bed.ring, bed.now).unwrap();
    for n in 1..=PAGES_MAX {
        let more = bed.queue.walk_page(&mut walk, page(PAGE_ROWS, i64::from(n)), bed.now);
        assert_eq!(more, n < PAGES_MAX);
    }
    bed.queue.end_walk(walk, WalkEnd::Done, bed.now);
    let mut rest = bed.queue.start_walk(bed.ring, bed.now).unwrap();
    assert_eq!(rest.kind(), WalkKind::Full);
    assert_eq!(rest.cursor().unwrap().last_write_at, Timestamp(i64::from(PAGES_MAX)));
    bed.queue.walk_page(&mut rest, page(1, 999), bed.now);
    bed.queue.end_walk(rest, WalkEnd::Done, bed.now);
    assert!(bed.queue.walk_due(bed.ring).unwrap() > bed.now);
    bed.queue.owe_walks();
    assert_eq!(bed.queue.start_walk(bed.ring, bed.now).unwrap().cursor(), None);
}

#[test]
fn a_repair_during_a_walk_is_owed_after_it() {
    let mut bed = Bed::new(PLAIN);
    let walk = bed.queue.start_walk(bed.ring, bed.now).unwrap();
    bed.queue.owe_walk(bed.ring);
    assert!(bed.queue.start_walk(bed.ring, bed.now).is_none(), "one at a time");
    bed.queue.end_walk(walk, WalkEnd::Done, bed.now);
    let again = bed.queue.start_walk(bed.ring, bed.now).unwrap();
    assert_eq!((again.kind(), again.cursor()), (WalkKind::Full, None));
}

#[test]
fn a_lost_walk_holds_the_ring_for_two_minutes_after_its_last_page() {
    let mut bed = Bed::new(PLAIN);
    let mut lost = bed.queue.start_walk(bed.ring, bed.now).unwrap();
    bed.pass(60_000);
    assert!(bed.queue.walk_page(&mut lost, page(PAGE_ROWS, 1), bed.now));
    bed.pass(119_999);
    assert!(bed.queue.start_walk(bed.ring, bed.now).is_none());
    bed.pass(1);
    assert_eq!(bed.queue.walk_due(bed.ring), Some(bed.now));
    let next = bed.queue.start_walk(bed.ring, bed.now).unwrap();
    assert_eq!(next.kind(), WalkKind::Full);
    // What the lost one still says changes nothing.
    assert!(!bed.queue.walk_page(&mut lost, page(PAGE_ROWS, 2), bed.now));
    assert_eq!(bed.queue.end_walk(lost, WalkEnd::Failed, bed.now), None);
    assert!(bed.queue.start_walk(bed.ring, bed.now).is_none());
    bed.queue.end_walk(next, WalkEnd::Done, bed.now);
    assert!(bed.queue.walk_due(bed.ring).unwrap().since(bed.now) >= Duration::from_secs(30));
}
