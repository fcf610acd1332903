use super::*;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn meta(lane: u64, id: u64) -> Meta {
    Meta { lane, id, bytes: 10, readable: true }
}

fn reason() -> Reason {
    Reason { sqlstate: Some("23514".to_owned()), error: "no".to_owned() }
}

fn permanent() -> Verdict {
    Verdict::Permanent(reason())
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("f{n:02}")).collect()
}

/// Starts a cycle over the files.
fn begin(drain: &mut Drain, now: Duration, files: usize) {
    let step = drain.step(now);
    assert!(matches!(step, Step::List { .. }), "{step:?}");
    drain.listed(now, names(files));
}

/// Reads the file that the drain asks for.
fn give(drain: &mut Drain, now: Duration, events: &[Meta]) {
    assert!(matches!(drain.step(now), Step::Read { from: 0, .. }));
    drain.read(Read { events: events.to_vec(), end: true });
}

/// The positions of the push that comes next.
fn push(drain: &mut Drain, now: Duration) -> Vec<u64> {
    match drain.step(now) {
        Step::Push { events, .. } => events,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_empty_spool_asks_for_nothing() {
    let mut drain = Drain::new(DrainOptions::default());
    begin(&mut drain, ms(0), 0);
    assert_eq!(drain.step(ms(10)), Step::Rest(None));
    assert_eq!(drain.step(ms(100_000)), Step::Rest(None));
    drain.news();
    assert_eq!(drain.step(ms(100_000)), Step::List { finalize: true });
}

#[test]
fn ten_files_a_cycle_when_healthy_and_one_when_not() {
    let mut drain = Drain::new(DrainOptions::default());
    let mut done = 0;
    begin(&mut drain, ms(0), 30);
    while let Step::Read { .. } = drain.step(ms(1)) {
        drain.read(Read { events: vec![meta(1, 1)], end: true });
        assert_eq!(push(&mut drain, ms(1)), [0]);
        drain.pushed(ms(1), vec![Verdict::Stored]);
        assert!(matches!(drain.step(ms(1)), Step::Finish { aside, .. } if aside.is_empty()));
        drain.finished();
        done += 1;
    }
    assert_eq!(done, 10);
    assert_eq!(drain.step(ms(1)), Step::Rest(Some(ms(100))));
    drain.heard(false);
    begin(&mut drain, ms(100), 20);
    give(&mut drain, ms(100), &[]);
    assert!(matches!(drain.step(ms(100)), Step::Finish { .. }));
    drain.finished();
    assert_eq!(drain.step(ms(101)), Step::Rest(Some(ms(200))), "one file and no more");
}

#[test]
fn ten_transient_failures_make_a_pause() {
    let mut drain = Drain::new(DrainOptions::default());
    let mut now = ms(0);
    for attempt in 0..25 {
        begin(&mut drain, now, 3);
        if attempt == 0 {
            give(&mut drain, now, &[meta(1, 1)]);
        }
        assert_eq!(push(&mut drain, now), [0]);
        drain.pushed(now, vec![Verdict::Transient]);
        assert!(!drain.is_healthy());
        let pause = if attempt % 10 == 9 { ms(5000) } else { ms(100) };
        assert_eq!(drain.step(now), Step::Rest(Some(now + pause)), "after attempt {attempt}");
        now += pause;
    }
}

#[test]
fn what_is_stored_is_not_pushed_again_after_a_failure() {
    let mut drain = Drain::new(DrainOptions::default());
    begin(&mut drain, ms(0), 1);
    give(&mut drain, ms(0), &[meta(1, 1), meta(2, 2), meta(1, 3)]);
    assert_eq!(push(&mut drain, ms(0)), [0, 1, 2]);
    drain.pushed(ms(0), vec![Verdict::Stored, Verdict::Transient, Verdict::Stored]);
    begin(&mut drain, ms(100), 1);
    assert_eq!(push(&mut drain, ms(100)), [1]);
    drain.pushed(ms(100), vec![Verdict::Stored]);
    assert_eq!(drain.step(ms(100)), Step::Finish { file: "f00".to_owned(), aside: vec![] });
}

#[test]
fn batches_end_at_their_bounds_and_before_a_repeat() {
    let options = DrainOptions { batch_events: 3, batch_bytes: 25, ..DrainOptions::default() };
    let mut drain = Drain::new(options);
    begin(&mut drain, ms(0), 1);
    let large = Meta { bytes: 100, ..meta(1, 9) };
    give(&mut drain, ms(0), &[meta(1, 1), meta(1, 2), meta(1, 3), meta(1, 3), large, meta(2, 4)]);
    for expected in [vec![0, 1], vec![2], vec![3], vec![4], vec![5]] {
        assert_eq!(push(&mut drain, ms(0)), expected);
        drain.pushed(ms(0), vec![Verdict::Stored; expected.len()]);
    }
    assert!(matches!(drain.step(ms(0)), Step::Finish { .. }));
}

#[test]
fn a_bad_event_is_found_tried_five_times_within_three_seconds_and_set_aside_alone() {
    let mut drain = Drain::new(DrainOptions::default());
    begin(&mut drain, ms(0), 2);
    // Of eight events of a lane the sixth is bad; another lane is fine.
    let mut events: Vec<Meta> = (0..8).map(|n| meta(1, n)).collect();
    events.push(meta(2, 100));
    give(&mut drain, ms(0), &events);
    let (mut now, mut attempts, mut stored) = (ms(0), Vec::new(), Vec::new());
    let finish = loop {
        match drain.step(now) {
            Step::Push { events: asked, .. } => {
                if asked == [5] {
                    attempts.push(now);
                }
                let bad = asked.contains(&5);
                let verdict = |n: &u64| if bad && *n != 8 { permanent() } else { Verdict::Stored };
                let verdicts: Vec<Verdict> = asked.iter().map(verdict).collect();
                stored.extend(
                    asked.iter().zip(&verdicts).filter(|(_, v)| **v == Verdict::Stored).map(|(n, _)| *n),
                );
                drain.pushed(now, verdicts);
            }
            Step::Rest(Some(until)) => now = until,
            Step::List { .. } => drain.listed(now, names(2)),
            other => break other,
        }
    };
    assert_eq!(finish, Step::Finish { file: "f00".to_owned(), aside: vec![(5, reason())] });
    stored.sort_unstable();
    assert_eq!(stored, [0, 1, 2, 3, 4, 6, 7, 8]);
    assert_eq!(attempts.len(), 5);
    assert!(attempts[4] - attempts[0] < ms(3000), "{attempts:?}");
    assert!(attempts.windows(2).all(|w| w[1] - w[0] >= ms(150)), "{attempts:?}");
    drain.finished();
    assert!(matches!(drain.step(now), Step::Read { file, .. } if file == "f01"), "the same cycle goes on");
}

#[test]
fn a_failure_that_passes_spends_no_attempt_of_a_bad_event() {
    let mut drain = Drain::new(DrainOptions::default());
    begin(&mut drain, ms(0), 1);
    give(&mut drain, ms(0), &[meta(1, 1)]);
    let (mut now, mut tried) = (ms(0), 0);
    loop {
        match drain.step(now) {
            Step::Push { .. } => {
                tried += 1;
                drain.pushed(now, vec![if tried % 2 == 0 { Verdict::Transient } else { permanent() }]);
            }
            Step::Rest(Some(until)) => now = until,
            Step::List { .. } => drain.listed(now, names(1)),
            Step::Finish { aside, .. } => {
                assert_eq!((aside.len(), tried), (1, 9));
                return;
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_file_that_cannot_be_read_is_moved_after_five_attempts() {
    let mut drain = Drain::new(DrainOptions::default());
    let (mut now, mut tried) = (ms(0), 0);
    loop {
        match drain.step(now) {
            Step::List { .. } => drain.listed(now, names(2)),
            Step::Read { file, .. } => {
                assert_eq!(file, "f00");
                tried += 1;
                drain.unreadable(now);
            }
            Step::Rest(Some(until)) => now = until,
            Step::Move { file } => {
                assert_eq!((file.as_str(), tried), ("f00", 5));
                drain.finished();
                assert!(matches!(drain.step(now), Step::Read { file, .. } if file == "f01"));
                return;
            }
            other => panic!("{other:?}"),
        }
    }
}
