//! Acknowledging: table 5.2 of the delivery contract, written down a second time and differently from the broker's own.

use queen_core::api::{AckItem, AckResult};
use queen_types::{AckStatus, Group, LeaseId, Offset, PartitionId};

use super::{Cursor, Letter, Model, Partition, Rules};

/// Where an item's message is, seen from the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In reach, at this offset.
    At(Offset),
    /// Done already.
    Done,
    /// Unknown.
    Unknown,
}

/// One item with its place.
#[derive(Debug, Clone, Copy)]
pub struct Placed<'a> {
    /// What the consumer says.
    pub status: AckStatus,
    /// Of which message.
    pub place: Place,
    /// And why.
    pub error: Option<&'a str>,
}

/// What a message is given up for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenUp {
    /// The message.
    pub offset: Offset,
    /// It is dead-lettered, else dropped.
    pub filed: bool,
    /// Retries it had used.
    pub retries: i32,
    /// Why.
    pub error: String,
    /// Unmentioned messages that were passed with it.
    pub passed: i64,
}

/// Positions of the items that are decided together, by partition and lease id.
type Groups = Vec<((PartitionId, Option<LeaseId>), Vec<usize>)>;

const NOT_YOURS: &str = "invalid or expired lease";
const TOO_LATE: &str = "already committed: the cursor moved past this message before this ack";
const UNKNOWN: &str = "unresolvable: transaction not in the ack window (hash purged or never pushed); if leased, the message redelivers";

fn refusal(text: &str) -> AckResult {
    AckResult { error: Some(text.to_owned()), ..AckResult::default() }
}

/// Settles one group of items on a cursor; one answer per item.
pub fn settle(
    cursor: &mut Cursor,
    rules: &Rules,
    lease: Option<&LeaseId>,
    items: &[Placed<'_>],
) -> (Vec<AckResult>, Option<GivenUp>) {
    if lease.is_some_and(|id| !cursor.is_held_by(id)) {
        return (items.iter().map(|_| refusal(NOT_YOURS)).collect(), None);
    }
    let held = cursor.is_held();
    let at = |item: &Placed<'_>| match item.place {
        Place::At(at) => Some(at),
        Place::Done | Place::Unknown => None,
    };
    let lowest = items.iter().filter(|i| held && i.status != AckStatus::Completed).filter_map(at).min();
    let highest = items
        .iter()
        .filter(|i| i.status == AckStatus::Completed)
        .filter_map(at)
        .filter(|at| lowest.is_none_or(|s| *at < s))
        .max();
    let before = cursor.committed;
    cursor.committed = highest.map_or(before, |m| m.max(before));

    let mut released = false;
    let mut given_up = None;
    let mut blamed = None;
    if let Some(s) = lowest {
        // Among what is said of one message the worst counts.
        let said = |status| items.iter().position(|i| at(i) == Some(s) && i.status == status);
        let order = [AckStatus::Dlq, AckStatus::Failed, AckStatus::Retry];
        let (status, by) =
            order.into_iter().find_map(|w| said(w).map(|i| (w, i))).unwrap_or((AckStatus::Retry, 0));
        let used = if cursor.retry_offset == Some(s) { cursor.retries } else { 0 };
        let passed = s - cursor.committed - 1;
        let spent = status == AckStatus::Dlq || (status == AckStatus::Failed && used >= rules.retry_limit);
        released = true;
        match (status, spent) {
            (_, true) if rules.redeliver_skipped && passed > 0 => {}
            (_, true) => {
                let own = items[by].error.or_else(|| items.iter().find_map(|i| i.error));
                given_up = Some(GivenUp {
                    offset: s,
                    filed: status == AckStatus::Dlq || rules.dead_letters,
                    retries: used,
                    error: own.unwrap_or("Retries exhausted").to_owned(),
                    passed,
                });
                blamed = Some(by);
                cursor.committed = s;
                (cursor.retries, cursor.retry_offset, cursor.attempt) = (0, None, None);
            }
            (AckStatus::Failed, false) => {
                (cursor.retries, cursor.retry_offset) = (used + 1, Some(s));
                cursor.waiting = rules.backoff;
            }
            _ => {}
        }
    } else if cursor.lease.as_ref().is_some_and(|lease| cursor.committed >= lease.end) {
        released = true;
        (cursor.retries, cursor.retry_offset, cursor.attempt) = (0, None, None);
    }
    if released {
        cursor.lease = None;
    }
    cursor.consumed += cursor.committed - before;

    let answer = |(i, item): (usize, &Placed<'_>)| {
        let signal = item.status != AckStatus::Completed;
        let fine = AckResult { success: true, lease_released: released, ..AckResult::default() };
        match item.place {
            Place::Unknown => refusal(UNKNOWN),
            Place::Done if signal => refusal(TOO_LATE),
            Place::Done => AckResult { noop: true, ..fine },
            Place::At(_) if signal && !held => refusal(NOT_YOURS),
            Place::At(at) => {
                let mine = given_up.as_ref().filter(|_| blamed == Some(i));
                AckResult {
                    dlq: mine.is_some_and(|g| g.filed),
                    dropped: mine.is_some_and(|g| !g.filed),
                    redelivers: !signal && at > cursor.committed,
                    ..fine
                }
            }
        }
    };
    (items.iter().enumerate().map(answer).collect(), given_up)
}

impl Partition {
    /// Where a key is, for an ack of this group. A span knows its own whatever their age; the rest of the log is known
    /// as long as it is young.
    pub(super) fn place(&self, group: &Group, key: &str) -> Place {
        let Some(cursor) = self.cursors.get(group) else { return Place::Unknown };
        if let Some(lease) = &cursor.lease {
            let inside = || self.occurrences(key).filter(|at| *at > cursor.committed && *at <= lease.end);
            // What was deleted is meant only if nothing else can be.
            if let Some(at) = inside().find(|at| *at >= self.log_start).or_else(|| inside().next()) {
                return Place::At(at);
            }
        }
        let young = || self.occurrences(key).filter(|at| !self.messages[*at as usize].aged);
        if cursor.lease.is_none()
            && let Some(at) = young().find(|at| *at > cursor.committed)
        {
            return Place::At(at);
        }
        if young().any(|at| at <= cursor.committed) { Place::Done } else { Place::Unknown }
    }

    /// Settles items of one group under one lease id, with their places at the beginning of the call; `None` when the
    /// group has no cursor here.
    pub(super) fn ack(
        &mut self,
        rules: &Rules,
        group: &Group,
        lease: Option<&LeaseId>,
        items: &[Placed<'_>],
    ) -> Option<Vec<AckResult>> {
        let mut cursor = self.cursors.get(group)?.clone();
        // Items of the same call under another lease id may have moved the cursor.
        let passed = |place: Place| matches!(place, Place::At(at) if at <= cursor.committed);
        let now = |item: &Placed<'_>| if passed(item.place) { Place::Done } else { item.place };
        let placed: Vec<_> = items.iter().map(|item| Placed { place: now(item), ..*item }).collect();
        let (answers, given_up) = settle(&mut cursor, rules, lease, &placed);
        self.cursors.insert(group.clone(), cursor);
        if let Some(given_up) = given_up.filter(|g| g.filed) {
            self.letters.push(Letter {
                group: group.clone(),
                offset: given_up.offset,
                retries: given_up.retries,
                error: given_up.error,
                deleted: given_up.offset < self.log_start,
            });
        }
        Some(answers)
    }
}

impl Model {
    /// The right answer to an ack call, whose effect is taken over.
    pub fn ack(&mut self, group: &Group, items: &[AckItem]) -> Vec<AckResult> {
        let mut results: Vec<AckResult> = vec![AckResult::default(); items.len()];
        let mut groups = Groups::new();
        for (i, item) in items.iter().enumerate() {
            match &item.partition {
                None => results[i] = refusal("partitionId is required"),
                Some(Err(text)) => {
                    results[i] = refusal(&format!("invalid partitionId {text:?}: it must be a UUID"));
                }
                Some(Ok(partition)) => {
                    let key = (*partition, item.lease.clone());
                    match groups.iter_mut().find(|(known, _)| *known == key) {
                        Some((_, of)) => of.push(i),
                        None => groups.push((key, vec![i])),
                    }
                }
            }
        }
        let placed: Vec<Placed<'_>> = items
            .iter()
            .map(|item| {
                let partition = item.partition.as_ref().and_then(|p| p.as_ref().ok());
                let partition = partition.and_then(|id| self.by_id(*id)).map(|(_, partition)| partition);
                let place = partition.map_or(Place::Unknown, |p| p.place(group, &item.transaction_id));
                Placed { status: item.status, place, error: item.error.as_deref() }
            })
            .collect();
        for ((partition, lease), of) in groups {
            let said: Vec<Placed<'_>> = of.iter().map(|i| placed[*i]).collect();
            let answers = self
                .by_id(partition)
                .and_then(|(rules, p)| p.ack(&rules.clone(), group, lease.as_ref(), &said))
                .unwrap_or_else(|| of.iter().map(|_| refusal("consumer not found")).collect());
            for (i, answer) in of.into_iter().zip(answers) {
                results[i] = answer;
            }
        }
        results
    }
}
