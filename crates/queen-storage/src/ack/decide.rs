//! What an ack does to a cursor: the decision table of the delivery contract, without a database.

use queen_types::{AckStatus, Offset, RetryBackoff};

/// The part of a cursor row that acks read and change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// Everything at or below is done.
    pub committed: Offset,
    /// Inclusive end of the leased span.
    pub batch_end: Option<Offset>,
    /// Who holds the lease, dead or alive.
    pub worker: Option<String>,
    /// The lease has not expired.
    pub live: bool,
    /// Retries used by the message at `retry_offset`.
    pub retries: i32,
    /// The message that the retries belong to.
    pub retry_offset: Option<Offset>,
}

/// The queue's rules.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Retries before a message is given up.
    pub retry_limit: i32,
    /// Given up means dead-lettered, else dropped.
    pub dead_letters: bool,
    /// Whether and how a failed ack delays redelivery.
    pub backoff: RetryBackoff,
    /// First delay, milliseconds.
    pub delay_ms: i32,
    /// Longest delay, milliseconds.
    pub delay_max_ms: i32,
    /// Random share added to the delay, 0..1.
    pub jitter: f32,
    /// Unmentioned messages below a message that is given up are redelivered first instead of passed.
    pub redeliver_skipped: bool,
}

/// Where an item's transaction id occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolved {
    /// At this offset above the cursor (the lowest one in the span).
    Above(Offset),
    /// At or below the cursor only.
    Below,
    /// Nowhere in the ack window.
    Nowhere,
}

/// One item of a bundle.
#[derive(Debug, Clone, Copy)]
pub struct Item<'a> {
    /// What became of the message.
    pub status: AckStatus,
    /// Where it is.
    pub resolved: Resolved,
    /// Its error text.
    pub error: Option<&'a str>,
}

/// Answer to one item.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// Took effect, or had already.
    pub success: bool,
    /// Why not.
    pub error: Option<String>,
    /// The bundle released its lease.
    pub lease_released: bool,
    /// This message was dead-lettered.
    pub dlq: bool,
    /// Was done before.
    pub noop: bool,
    /// Completed, but will be delivered again.
    pub redelivers: bool,
    /// Given up without a dead letter.
    pub dropped: bool,
}

impl Answer {
    /// A refusal.
    pub fn refused(error: &str) -> Answer {
        Answer { error: Some(error.to_owned()), ..Answer::default() }
    }
}

/// A message to be dead-lettered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dead {
    /// Its offset.
    pub offset: Offset,
    /// The item that names it, as position in the bundle.
    pub item: usize,
    /// Retries it had used.
    pub retries: i32,
    /// Why.
    pub error: String,
}

/// What to write, and what to answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The row afterwards.
    pub cursor: Cursor,
    /// The lease goes.
    pub release: bool,
    /// The attempt columns start over.
    pub reset_attempt: bool,
    /// Milliseconds until the partition is claimable again.
    pub delay_ms: Option<i64>,
    /// A message to file.
    pub dead_letter: Option<Dead>,
    /// A message was dropped.
    pub dropped: bool,
    /// Unmentioned messages passed by a dead letter or drop.
    pub skipped: u64,
    /// One per item.
    pub answers: Vec<Answer>,
}

/// Refusal of an ack whose lease is not the row's live one.
pub const INVALID_LEASE: &str = "invalid or expired lease";
/// Refusal of a negative ack for a message that is done.
pub const ALREADY_COMMITTED: &str = "already committed: the cursor moved past this message before this ack";
/// Refusal of an ack that names no known message.
pub const UNRESOLVABLE: &str = "unresolvable: transaction not in the ack window (hash purged or never pushed); if leased, the message redelivers";

/// The signal that decides a bundle: the lowest failed, retry or dlq; at one offset dlq, then failed, then retry.
struct Signal {
    offset: Offset,
    status: AckStatus,
    item: usize,
}

/// Decides one bundle: items of one cursor under one lease id (or under none). `random` in 0..1 is the jitter's draw.
pub fn decide(
    cursor: &Cursor,
    policy: &Policy,
    lease: Option<&str>,
    items: &[Item<'_>],
    random: f32,
) -> Decision {
    let unchanged = |answers| Decision {
        cursor: cursor.clone(),
        release: false,
        reset_attempt: false,
        delay_ms: None,
        dead_letter: None,
        dropped: false,
        skipped: 0,
        answers,
    };
    if let Some(lease) = lease
        && !(cursor.live && cursor.worker.as_deref() == Some(lease))
    {
        return unchanged(items.iter().map(|_| Answer::refused(INVALID_LEASE)).collect());
    }
    // Without a live lease nobody holds the messages, so only completions count.
    let signal = if cursor.live { lowest_signal(items) } else { None };
    let ceiling = signal.as_ref().map_or(Offset::MAX, |s| s.offset);
    let reached = items
        .iter()
        .filter(|i| i.status == AckStatus::Completed)
        .filter_map(|i| match i.resolved {
            Resolved::Above(at) if at < ceiling => Some(at),
            _ => None,
        })
        .max()
        .unwrap_or(cursor.committed)
        .max(cursor.committed);
    let mut decision = unchanged(Vec::new());
    decision.cursor.committed = reached;
    match &signal {
        None => complete(&mut decision),
        Some(signal) => obey(&mut decision, policy, items, signal, reached, random),
    }
    decision.answers =
        items.iter().enumerate().map(|(i, item)| answer(cursor, &decision, &signal, i, item)).collect();
    decision
}

fn lowest_signal(items: &[Item<'_>]) -> Option<Signal> {
    let rank = |status: AckStatus| match status {
        AckStatus::Dlq => 0,
        AckStatus::Failed => 1,
        AckStatus::Retry => 2,
        AckStatus::Completed => 3,
    };
    items
        .iter()
        .enumerate()
        .filter(|(_, item)| item.status.is_signal())
        .filter_map(|(i, item)| match item.resolved {
            Resolved::Above(offset) => Some(Signal { offset, status: item.status, item: i }),
            Resolved::Below | Resolved::Nowhere => None,
        })
        .min_by_key(|s| (s.offset, rank(s.status)))
}

/// No signal: the batch is complete when its end is reached.
fn complete(decision: &mut Decision) {
    let done = decision.cursor.batch_end.is_some_and(|end| decision.cursor.committed >= end);
    if done {
        release(decision);
        decision.reset_attempt = true;
        clear_retries(decision);
    }
}

fn obey(
    decision: &mut Decision,
    policy: &Policy,
    items: &[Item<'_>],
    signal: &Signal,
    reached: Offset,
    random: f32,
) {
    release(decision);
    let used = if decision.cursor.retry_offset == Some(signal.offset) { decision.cursor.retries } else { 0 };
    let skipped = signal.offset - reached - 1;
    let exhausted = signal.status == AckStatus::Failed && used >= policy.retry_limit;
    let gives_up = signal.status == AckStatus::Dlq || exhausted;
    if signal.status == AckStatus::Retry || (gives_up && policy.redeliver_skipped && skipped > 0) {
        return;
    }
    if !gives_up {
        decision.cursor.retries = used + 1;
        decision.cursor.retry_offset = Some(signal.offset);
        decision.delay_ms = delay(policy, used + 1, random);
        return;
    }
    decision.cursor.committed = signal.offset;
    decision.skipped = u64::try_from(skipped).unwrap_or(0);
    decision.reset_attempt = true;
    clear_retries(decision);
    if signal.status == AckStatus::Dlq || policy.dead_letters {
        let error = items[signal.item].error.or_else(|| items.iter().find_map(|i| i.error));
        decision.dead_letter = Some(Dead {
            offset: signal.offset,
            item: signal.item,
            retries: used,
            error: error.unwrap_or("Retries exhausted").to_owned(),
        });
    } else {
        decision.dropped = true;
    }
}

fn release(decision: &mut Decision) {
    decision.release = true;
    decision.cursor.worker = None;
    decision.cursor.batch_end = None;
    decision.cursor.live = false;
}

fn clear_retries(decision: &mut Decision) {
    decision.cursor.retries = 0;
    decision.cursor.retry_offset = None;
}

fn delay(policy: &Policy, retry: i32, random: f32) -> Option<i64> {
    let first = f64::from(policy.delay_ms.max(0));
    let base = match policy.backoff {
        RetryBackoff::None => return None,
        RetryBackoff::Fixed => first,
        RetryBackoff::Exponential => first * 2f64.powi((retry - 1).clamp(0, 62)),
    };
    let jittered = base * (1.0 + f64::from(policy.jitter.clamp(0.0, 1.0)) * f64::from(random));
    Some(jittered.min(f64::from(policy.delay_max_ms.max(0))) as i64)
}

fn answer(
    before: &Cursor,
    decision: &Decision,
    signal: &Option<Signal>,
    index: usize,
    item: &Item<'_>,
) -> Answer {
    let done = Answer { success: true, lease_released: decision.release, ..Answer::default() };
    let at = match item.resolved {
        Resolved::Nowhere => return Answer::refused(UNRESOLVABLE),
        Resolved::Below if item.status.is_signal() => return Answer::refused(ALREADY_COMMITTED),
        Resolved::Below => return Answer { noop: true, ..done },
        Resolved::Above(at) => at,
    };
    if item.status.is_signal() && !before.live {
        return Answer::refused(INVALID_LEASE);
    }
    let Some(signal) = signal else { return done };
    let given_up = decision.dead_letter.is_some() || decision.dropped;
    if given_up && at == signal.offset && index == signal.item {
        return Answer { dlq: decision.dead_letter.is_some(), dropped: decision.dropped, ..done };
    }
    Answer { redelivers: item.status == AckStatus::Completed && at > decision.cursor.committed, ..done }
}

#[cfg(test)]
mod tests;
