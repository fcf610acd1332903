use super::*;

fn cursor(committed: Offset, batch_end: Offset) -> Cursor {
    Cursor {
        committed,
        batch_end: Some(batch_end),
        worker: Some("w".into()),
        live: true,
        retries: 0,
        retry_offset: None,
    }
}

fn policy() -> Policy {
    Policy {
        retry_limit: 2,
        dead_letters: true,
        backoff: RetryBackoff::None,
        delay_ms: 1000,
        delay_max_ms: 60_000,
        jitter: 0.0,
        redeliver_skipped: false,
    }
}

fn item(status: AckStatus, at: Offset) -> Item<'static> {
    Item { status, resolved: Resolved::Above(at), error: None }
}

use AckStatus::{Completed, Dlq, Failed, Retry};

#[test]
fn the_last_message_completes_the_batch() {
    let d = decide(&cursor(-1, 3), &policy(), Some("w"), &[item(Completed, 3)], 0.0);
    assert_eq!(d.cursor.committed, 3);
    assert!(d.release && d.reset_attempt);
    assert_eq!(d.answers, [Answer { success: true, lease_released: true, ..Answer::default() }]);
}

#[test]
fn a_part_of_the_batch_keeps_the_lease() {
    let d = decide(&cursor(-1, 3), &policy(), Some("w"), &[item(Completed, 1)], 0.0);
    assert_eq!((d.cursor.committed, d.release), (1, false));
    assert_eq!(d.cursor.worker.as_deref(), Some("w"));
    assert!(!d.answers[0].lease_released && d.answers[0].success);
}

#[test]
fn a_completed_batch_clears_the_budget_and_a_part_does_not() {
    let before = Cursor { retries: 2, retry_offset: Some(0), ..cursor(-1, 3) };
    let part = decide(&before, &policy(), Some("w"), &[item(Completed, 1)], 0.0);
    assert_eq!((part.cursor.retries, part.cursor.retry_offset), (2, Some(0)));
    let whole = decide(&before, &policy(), Some("w"), &[item(Completed, 3)], 0.0);
    assert_eq!((whole.cursor.retries, whole.cursor.retry_offset), (0, None));
}

#[test]
fn the_lowest_signal_decides_and_what_is_above_redelivers() {
    let items = [item(Completed, 4), item(Retry, 3), item(Retry, 1), item(Completed, 0)];
    let d = decide(&cursor(-1, 4), &policy(), Some("w"), &items, 0.0);
    assert_eq!((d.cursor.committed, d.release, d.cursor.retries), (0, true, 0));
    assert!(d.answers.iter().all(|a| a.success && a.lease_released));
    assert!(d.answers[0].redelivers && !d.answers[3].redelivers);
}

#[test]
fn failed_charges_the_message_it_names() {
    let first = decide(&cursor(-1, 4), &policy(), Some("w"), &[item(Failed, 2), item(Completed, 1)], 0.0);
    assert_eq!(first.cursor.committed, 1);
    assert_eq!((first.cursor.retries, first.cursor.retry_offset), (1, Some(2)));
    let again = Cursor { retries: 1, retry_offset: Some(2), ..cursor(1, 4) };
    let second = decide(&again, &policy(), Some("w"), &[item(Failed, 2)], 0.0);
    assert_eq!(second.cursor.retries, 2);
    let other = decide(&again, &policy(), Some("w"), &[item(Failed, 3)], 0.0);
    assert_eq!((other.cursor.retries, other.cursor.retry_offset), (1, Some(3)));
}

#[test]
fn an_exhausted_message_is_filed_with_its_own_error_else_the_first() {
    let spent = Cursor { retries: 2, retry_offset: Some(1), ..cursor(0, 4) };
    let mine = Item { error: Some("mine"), ..item(Failed, 1) };
    let other = Item { error: Some("other"), ..item(Failed, 3) };
    let d = decide(&spent, &policy(), Some("w"), &[other, mine], 0.0);
    assert_eq!(d.dead_letter, Some(Dead { offset: 1, item: 1, retries: 2, error: "mine".into() }));
    assert_eq!((d.cursor.committed, d.cursor.retries, d.release), (1, 0, true));
    assert_eq!(d.answers.iter().map(|a| a.dlq).collect::<Vec<_>>(), [false, true]);
    let d = decide(&spent, &policy(), Some("w"), &[other, item(Failed, 1)], 0.0);
    assert_eq!(d.dead_letter.map(|dead| dead.error), Some("other".into()));
    let d = decide(&spent, &policy(), Some("w"), &[item(Failed, 1)], 0.0);
    assert_eq!(d.dead_letter.map(|dead| dead.error), Some("Retries exhausted".into()));
}

#[test]
fn without_dead_letters_an_exhausted_message_is_dropped_and_told() {
    let off = Policy { dead_letters: false, retry_limit: 0, ..policy() };
    let d = decide(&cursor(-1, 1), &off, Some("w"), &[item(Failed, 0)], 0.0);
    assert!(d.dropped && d.dead_letter.is_none() && d.release);
    assert_eq!(d.cursor.committed, 0);
    assert!(d.answers[0].success && d.answers[0].dropped && !d.answers[0].dlq);
    // dlq is an order, whatever the option says
    let d = decide(&cursor(-1, 1), &off, Some("w"), &[item(Dlq, 0)], 0.0);
    assert!(d.dead_letter.is_some() && !d.dropped);
}

#[test]
fn at_one_offset_dlq_beats_failed_beats_retry() {
    for (given, expected) in [([Retry, Failed], Failed), ([Failed, Dlq], Dlq), ([Dlq, Retry], Dlq)] {
        let items = [item(given[0], 0), item(given[1], 0)];
        let d = decide(&cursor(-1, 1), &policy(), Some("w"), &items, 0.0);
        assert_eq!(d.dead_letter.is_some(), expected == Dlq, "{given:?}");
        assert_eq!(d.cursor.retries, i32::from(expected == Failed), "{given:?}");
    }
}

#[test]
fn what_a_dead_letter_passes_unmentioned_is_counted_or_redelivered() {
    let d = decide(&cursor(-1, 4), &policy(), Some("w"), &[item(Dlq, 3)], 0.0);
    assert_eq!((d.cursor.committed, d.skipped), (3, 3));
    let keep = Policy { redeliver_skipped: true, ..policy() };
    let d = decide(&cursor(-1, 4), &keep, Some("w"), &[item(Completed, 1), item(Dlq, 3)], 0.0);
    assert_eq!((d.cursor.committed, d.skipped, d.release), (1, 0, true));
    assert!(d.dead_letter.is_none());
    let d = decide(&cursor(-1, 4), &keep, Some("w"), &[item(Completed, 2), item(Dlq, 3)], 0.0);
    assert_eq!((d.cursor.committed, d.dead_letter.is_some()), (3, true));
}

#[test]
fn a_lease_that_is_not_the_live_one_changes_nothing() {
    let before = cursor(-1, 3);
    let dead = Cursor { live: false, ..cursor(-1, 3) };
    for (row, lease) in [(&before, "other"), (&dead, "w")] {
        let d = decide(row, &policy(), Some(lease), &[item(Completed, 3), item(Failed, 0)], 0.0);
        assert_eq!(&d.cursor, row);
        assert!(
            !d.release && d.answers.iter().all(|a| !a.success && a.error.as_deref() == Some(INVALID_LEASE))
        );
    }
}

#[test]
fn without_a_lease_only_completions_count() {
    let free = Cursor { batch_end: None, worker: None, live: false, ..cursor(1, 0) };
    let d = decide(&free, &policy(), None, &[item(Completed, 3)], 0.0);
    assert_eq!((d.cursor.committed, d.release), (3, false));
    assert!(d.answers[0].success);
    for status in [Failed, Retry, Dlq] {
        let d = decide(&free, &policy(), None, &[item(status, 3)], 0.0);
        assert_eq!(d.cursor, free);
        assert_eq!(d.answers, [Answer::refused(INVALID_LEASE)]);
    }
}

#[test]
fn what_is_done_or_unknown_is_answered_honestly() {
    let below = |status| Item { status, resolved: Resolved::Below, error: None };
    let nowhere = Item { status: Completed, resolved: Resolved::Nowhere, error: None };
    let items = [below(Completed), below(Failed), nowhere, item(Completed, 2)];
    let d = decide(&cursor(0, 3), &policy(), Some("w"), &items, 0.0);
    assert!(d.answers[0].success && d.answers[0].noop);
    assert_eq!(d.answers[1], Answer::refused(ALREADY_COMMITTED));
    assert_eq!(d.answers[2], Answer::refused(UNRESOLVABLE));
    assert!(d.answers[3].success && !d.answers[3].noop);
    assert_eq!(d.cursor.committed, 2);
}

#[test]
fn delays_follow_the_option() {
    let with = |backoff, jitter| Policy {
        backoff,
        jitter,
        delay_ms: 100,
        delay_max_ms: 350,
        retry_limit: 9,
        ..policy()
    };
    let fail = |policy: &Policy, used| {
        let row = Cursor { retries: used, retry_offset: Some(0), ..cursor(-1, 1) };
        decide(&row, policy, Some("w"), &[item(Failed, 0)], 0.5).delay_ms
    };
    assert_eq!(fail(&with(RetryBackoff::None, 0.0), 0), None);
    assert_eq!(fail(&with(RetryBackoff::Fixed, 0.0), 5), Some(100));
    assert_eq!(fail(&with(RetryBackoff::Exponential, 0.0), 0), Some(100));
    assert_eq!(fail(&with(RetryBackoff::Exponential, 0.0), 1), Some(200));
    assert_eq!(fail(&with(RetryBackoff::Exponential, 0.0), 8), Some(350));
    assert_eq!(fail(&with(RetryBackoff::Fixed, 1.0), 0), Some(150));
    let retry = decide(&cursor(-1, 1), &with(RetryBackoff::Fixed, 0.0), Some("w"), &[item(Retry, 0)], 0.0);
    assert_eq!(retry.delay_ms, None);
}
