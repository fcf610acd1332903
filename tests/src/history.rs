//! What was observed from outside, and the invariants that hold of it without any model: what was stored, what was
//! delivered to whom in which order, and where the cursors stood.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::ensure;
use queen_types::{Group, MessageId, Offset, PartitionId};

/// A group on a partition.
pub type Place = (PartitionId, Group);

/// The record of a run.
#[derive(Debug, Default)]
pub struct History {
    /// Offset of every stored message.
    offsets: BTreeMap<(PartitionId, MessageId), Offset>,
    /// First offset that still exists.
    log_start: BTreeMap<PartitionId, Offset>,
    /// Cursor as last seen.
    committed: BTreeMap<Place, Offset>,
    /// Where the group began.
    began: BTreeMap<Place, Offset>,
    /// Offsets delivered so far.
    delivered: BTreeMap<Place, BTreeSet<Offset>>,
    /// Offsets that the group completed without having been given them, which it may by acking a later one.
    passed: BTreeMap<Place, BTreeSet<Offset>>,
}

impl History {
    /// A message was answered `queued`.
    pub fn stored(&mut self, partition: PartitionId, id: MessageId, at: Offset) {
        self.offsets.insert((partition, id), at);
    }

    /// Everything below was deleted.
    pub fn deleted_below(&mut self, partition: PartitionId, at: Offset) {
        self.log_start.insert(partition, at);
    }

    /// A group that begins after `at` on this partition, told before its first delivery there.
    pub fn began(&mut self, place: &Place, at: Offset) {
        self.began.entry(place.clone()).or_insert(at);
        self.committed.entry(place.clone()).or_insert(at);
    }

    /// The cursor stands there now. Only an ack may move it over messages that nobody was given.
    ///
    /// # Errors
    /// When it went back (I-9).
    pub fn cursor(&mut self, place: &Place, at: Offset, by_ack: bool) -> anyhow::Result<()> {
        let before = self.committed.insert(place.clone(), at).unwrap_or(-1);
        ensure!(at >= before, "I-9: the cursor of {place:?} went back from {before} to {at}");
        if !by_ack {
            return Ok(());
        }
        let seen = self.delivered.entry(place.clone()).or_default();
        let unseen = (before + 1..=at).filter(|at| !seen.contains(at));
        self.passed.entry(place.clone()).or_default().extend(unseen);
        Ok(())
    }

    /// A batch was delivered.
    ///
    /// # Errors
    /// When it breaks I-13, I-14 or I-15.
    pub fn batch(&mut self, place: &Place, ids: impl Iterator<Item = MessageId>) -> anyhow::Result<()> {
        let begin = self.began.get(place).copied().unwrap_or(-1);
        let committed = self.committed.get(place).copied().unwrap_or(begin);
        let first = (committed + 1).max(self.log_start.get(&place.0).copied().unwrap_or(0));
        let seen = self.delivered.entry(place.clone()).or_default();
        for (expected, id) in (first..).zip(ids) {
            let at = self.offsets.get(&(place.0, id)).copied();
            let Some(at) = at else {
                anyhow::bail!("{id} was delivered from {place:?} and never stored there")
            };
            ensure!(
                at > committed,
                "I-15: offset {at} was delivered to {place:?} beyond its cursor {committed}"
            );
            if !seen.contains(&at) {
                let newest = seen.last().copied().unwrap_or(-1);
                ensure!(at > newest, "I-13: offset {at} came to {place:?} for the first time after {newest}");
            }
            ensure!(at == expected, "I-14: {place:?} was given offset {at} where {expected} was next");
            seen.insert(at);
        }
        Ok(())
    }

    /// After everything was drained: I-12 for a group on a partition, whose log ends at `log_end`.
    ///
    /// # Errors
    /// Names the messages that were lost.
    pub fn check_nothing_lost(&self, place: &Place, log_end: Offset) -> anyhow::Result<()> {
        let begin = self.began.get(place).copied().unwrap_or(-1);
        let start = self.log_start.get(&place.0).copied().unwrap_or(0).max(begin + 1);
        let none = BTreeSet::new();
        let seen = self.delivered.get(place).unwrap_or(&none);
        let passed = self.passed.get(place).unwrap_or(&none);
        let lost: Vec<Offset> =
            (start..=log_end).filter(|at| !seen.contains(at) && !passed.contains(at)).collect();
        ensure!(lost.is_empty(), "I-12: {place:?} was never given {lost:?}");
        Ok(())
    }
}
