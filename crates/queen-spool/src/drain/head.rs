//! The oldest file: what was read of it, what became of it, what is tried next.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use super::{DrainOptions, GAPS, Meta, Read, Reason, Step, Verdict};

type Numbered = (u64, Meta);

/// An event that fails by itself.
#[derive(Debug)]
struct Suspect {
    meta: Meta,
    attempts: usize,
    due: Duration,
}

#[derive(Debug)]
pub(super) struct Head {
    pub(super) file: String,
    /// Events read.
    next: u64,
    ended: bool,
    /// Read, and not pushed yet.
    ahead: VecDeque<Numbered>,
    /// Pushed in vain, to be pushed next; the last group first.
    groups: Vec<Vec<Numbered>>,
    suspects: BTreeMap<u64, Suspect>,
    aside: BTreeMap<u64, Reason>,
    /// The push that was asked for.
    asked: Option<Vec<Numbered>>,
    /// Attempts in vain to read it, and when the next is due.
    broken: Option<(usize, Duration)>,
}

impl Head {
    pub(super) fn new(file: String) -> Head {
        Head {
            file,
            next: 0,
            ended: false,
            ahead: VecDeque::new(),
            groups: Vec::new(),
            suspects: BTreeMap::new(),
            aside: BTreeMap::new(),
            asked: None,
            broken: None,
        }
    }

    /// What to do for this file, or nothing now.
    pub(super) fn step(&mut self, now: Duration, options: &DrainOptions) -> Option<Step> {
        let file = self.file.clone();
        match self.broken {
            Some((attempts, _)) if attempts > GAPS.len() => return Some(Step::Move { file }),
            Some((_, due)) if due > now => return None,
            _ => {}
        }
        if self.asked.is_none() {
            self.asked = self.due(now, options).or_else(|| self.groups.pop()).or_else(|| self.batch(options));
        }
        if let Some(asked) = &self.asked {
            return Some(Step::Push { file, events: asked.iter().map(|(index, _)| *index).collect() });
        }
        if !self.ended {
            return Some(Step::Read { file, from: self.next });
        }
        if !self.suspects.is_empty() {
            return None;
        }
        let aside = self.aside.iter().map(|(index, reason)| (*index, reason.clone())).collect();
        Some(Step::Finish { file, aside })
    }

    /// When it has nothing to do before some moment: that moment.
    pub(super) fn rests_until(&self, now: Duration) -> Option<Duration> {
        if let Some((_, due)) = self.broken {
            return Some(due);
        }
        let busy = self.asked.is_some() || !self.groups.is_empty() || !self.ahead.is_empty() || !self.ended;
        if busy {
            return Some(now);
        }
        Some(self.suspects.values().map(|suspect| suspect.due).min().unwrap_or(now))
    }

    /// The next events that go together: as many as fit, up to one that repeats another. Pushing a repeat later lets the
    /// database say whether it is one.
    fn batch(&mut self, options: &DrainOptions) -> Option<Vec<Numbered>> {
        let mut batch: Vec<Numbered> = Vec::new();
        let mut bytes = 0;
        let mut ids = HashSet::new();
        while let Some((_, meta)) = self.ahead.front() {
            let fits = batch.is_empty()
                || (batch.len() < options.batch_events && bytes + meta.bytes <= options.batch_bytes);
            if !fits || !ids.insert(meta.id) {
                break;
            }
            bytes += meta.bytes;
            batch.extend(self.ahead.pop_front());
        }
        // One that is cut short by the end of what was read would be small for no reason.
        let more = !self.ended && self.ahead.is_empty() && batch.len() < options.batch_events;
        if more && bytes < options.batch_bytes {
            batch.into_iter().rev().for_each(|event| self.ahead.push_front(event));
            return None;
        }
        (!batch.is_empty()).then_some(batch)
    }

    /// Events whose next attempt is due, one of each lane: the verdict on a lane is that on its event.
    fn due(&mut self, now: Duration, options: &DrainOptions) -> Option<Vec<Numbered>> {
        let mut lanes = HashSet::new();
        let due = self.suspects.iter().filter(|(_, s)| s.due <= now && lanes.insert(s.meta.lane));
        let due: Vec<Numbered> =
            due.take(options.batch_events.max(1)).map(|(index, s)| (*index, s.meta)).collect();
        (!due.is_empty()).then_some(due)
    }

    /// It cannot be read.
    pub(super) fn unreadable(&mut self, now: Duration) {
        let attempts = self.broken.map_or(0, |(attempts, _)| attempts) + 1;
        let gap = GAPS.get(attempts - 1).copied().unwrap_or_default();
        self.broken = Some((attempts, now + gap));
    }

    pub(super) fn read(&mut self, read: Read) {
        self.broken = None;
        for meta in read.events {
            if meta.readable {
                self.ahead.push_back((self.next, meta));
            } else {
                let reason = Reason { sqlstate: None, error: "the record is no event".to_owned() };
                self.aside.insert(self.next, reason);
            }
            self.next += 1;
        }
        self.ended = read.end;
    }

    /// Books the verdicts. False when something failed for a passing reason.
    pub(super) fn pushed(&mut self, now: Duration, verdicts: Vec<Verdict>) -> bool {
        let Some(asked) = self.asked.take() else { return true };
        let mut lanes: HashMap<u64, usize> = HashMap::new();
        asked.iter().for_each(|(_, meta)| *lanes.entry(meta.lane).or_default() += 1);
        let (mut again, mut passing) = (Vec::new(), false);
        let mut together: Vec<(u64, Vec<Numbered>)> = Vec::new();
        // A push that answers too little has not answered for the rest.
        let verdicts = verdicts.into_iter().chain(std::iter::repeat(Verdict::Transient));
        for ((index, meta), verdict) in asked.into_iter().zip(verdicts) {
            match verdict {
                Verdict::Stored => {
                    self.suspects.remove(&index);
                }
                // A suspect keeps its attempts: they are for failures that do not pass.
                Verdict::Transient if self.suspects.contains_key(&index) => passing = true,
                Verdict::Transient => {
                    passing = true;
                    again.push((index, meta));
                }
                Verdict::Permanent(reason) if lanes.get(&meta.lane) == Some(&1) => {
                    self.suspect(now, index, meta, reason);
                }
                Verdict::Permanent(_) => match together.iter_mut().find(|(lane, _)| *lane == meta.lane) {
                    Some((_, events)) => events.push((index, meta)),
                    None => together.push((meta.lane, vec![(index, meta)])),
                },
            }
        }
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for (_, mut events) in together {
            second.extend(events.split_off(events.len().div_ceil(2)));
            first.extend(events);
        }
        for mut group in [second, first, again] {
            group.sort_by_key(|(index, _)| *index);
            if !group.is_empty() {
                self.groups.push(group);
            }
        }
        !passing
    }

    fn suspect(&mut self, now: Duration, index: u64, meta: Meta, reason: Reason) {
        let attempts = self.suspects.get(&index).map_or(0, |suspect| suspect.attempts) + 1;
        match GAPS.get(attempts - 1) {
            Some(gap) => {
                self.suspects.insert(index, Suspect { meta, attempts, due: now + *gap });
            }
            None => {
                self.suspects.remove(&index);
                self.aside.insert(index, reason);
            }
        }
    }
}
