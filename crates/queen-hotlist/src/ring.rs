use std::time::Duration;

use queen_types::Group;

use crate::checkout::{Candidate, ClaimId, Release, Verdict};
use crate::entry::{Entry, EntryView, State};
use crate::intern::Partitions;
use crate::options::Rules;
use crate::ready::Ready;
use crate::wheel::Wheel;
use crate::{Millis, grow};

/// One group's view of the queue: which partitions probably have work for it.
///
/// The event table of the crate's documentation is in [`Ring::mark`], [`Ring::checkout`], [`Ring::settle`],
/// [`Ring::released`] and [`Ring::reseed_row`].
#[derive(Debug)]
pub(crate) struct Ring {
    pub(crate) group: Group,
    /// Tells this life of the ring from others in its slot.
    pub(crate) born: u64,
    /// The last time a consumer came.
    pub(crate) served_at: Millis,
    /// Entries that became READY and have not been reported yet.
    pub(crate) woken: u32,
    entries: Vec<Entry>,
    ready: Ready,
    wheel: Wheel,
    inflight: u32,
    /// Sum of the counts of READY entries.
    ready_messages: u64,
}

impl Ring {
    pub(crate) fn new(group: Group, born: u64, now: Millis) -> Ring {
        Ring {
            group,
            born,
            served_at: now,
            woken: 0,
            entries: Vec::new(),
            ready: Ready::new(),
            wheel: Wheel::new(),
            inflight: 0,
            ready_messages: 0,
        }
    }

    /// New messages landed.
    pub(crate) fn mark(&mut self, index: u32, messages: u32, now: Millis, rules: &Rules) {
        self.ensure(index);
        let entry = &mut self.entries[index as usize];
        entry.epoch = entry.epoch.wrapping_add(1);
        entry.set_pending(now);
        let before = entry.count;
        // A hint may not know how many; one is enough to keep the entry from being taken for drained.
        entry.count = before.saturating_add(saturate(u64::from(messages.max(1))));
        let gathered = entry.count >= rules.window_batch;
        let claimable_soon = entry.at <= now.plus(rules.pad);
        match entry.state {
            State::Inflight => {}
            State::Ready => self.ready_messages += u64::from(entry.count - before),
            State::Idle if rules.is_delayed() => {
                self.park(index, now.plus(rules.deferral.delayed).plus(rules.pad), false, now);
            }
            State::Idle if rules.is_windowed() && !gathered => {
                self.park(index, now.plus(rules.deferral.window), false, now);
            }
            State::Idle => self.make_ready(index, now),
            State::Wheel if rules.is_delayed() => {}
            // A gathered batch ends the hold of a window, not a lease: every further mark would ask in vain.
            State::Wheel if rules.is_windowed() => {
                if gathered && (!entry.leased() || claimable_soon) {
                    self.make_ready(index, now);
                }
            }
            State::Wheel => {
                if claimable_soon {
                    self.make_ready(index, now);
                }
            }
        }
    }

    /// Takes entries for one pop, longest ready first, until their counts cover `messages`; at least one.
    pub(crate) fn checkout(
        &mut self,
        ticket: u64,
        partitions_max: usize,
        messages: u64,
        partitions: &Partitions,
        now: Millis,
    ) -> Vec<Candidate> {
        self.served_at = now;
        let promoted = self.promote_due(now);
        let mut taken = Vec::new();
        let mut covered = 0;
        while let Some(index) = self.ready.head() {
            if !taken.is_empty() && (taken.len() >= partitions_max || covered >= messages) {
                break;
            }
            let candidate = self.take(index, ticket, partitions);
            covered += candidate.as_ref().map_or(0, |candidate| u64::from(candidate.count));
            taken.extend(candidate);
        }
        // What came due and is taken at once needs nobody else.
        self.woken = self.woken.saturating_sub(promoted.saturating_sub(self.ready.len()));
        taken
    }

    /// Takes one named entry, wherever it is.
    pub(crate) fn checkout_one(
        &mut self,
        index: u32,
        ticket: u64,
        partitions: &Partitions,
        now: Millis,
    ) -> Option<Candidate> {
        self.served_at = now;
        self.ensure(index);
        if self.entries[index as usize].state == State::Inflight {
            return None;
        }
        self.take(index, ticket, partitions)
    }

    fn take(&mut self, index: u32, ticket: u64, partitions: &Partitions) -> Option<Candidate> {
        self.detach(index);
        let entry = &mut self.entries[index as usize];
        // Forgetting a partition idles its entries, so there is always one.
        let (partition, name) = partitions.get(index)?;
        entry.state = State::Inflight;
        entry.clear_flags();
        entry.set_ticket(ticket);
        self.inflight += 1;
        let (epoch, count) = (entry.epoch, entry.count);
        let tag = entry.tag;
        Some(Candidate {
            partition,
            name: name.clone(),
            tag,
            index,
            epoch,
            count,
            verdict: Verdict::NotEvaluated,
        })
    }

    /// Whether this checkout still holds the entry.
    pub(crate) fn holds(&self, index: u32, ticket: u64) -> bool {
        self.entries
            .get(index as usize)
            .is_some_and(|entry| entry.state == State::Inflight && entry.ticket() == ticket)
    }

    /// Ends the flight of an entry that [`Ring::holds`].
    pub(crate) fn settle(&mut self, candidate: &Candidate, now: Millis, rules: &Rules) {
        let index = candidate.index;
        let entry = &mut self.entries[index as usize];
        let claim = ClaimId::of(entry.ticket());
        let moved = entry.epoch != candidate.epoch;
        let (released, acked) = (entry.released(), entry.acked());
        match candidate.verdict {
            Verdict::NotEvaluated => self.requeue(index, 0),
            Verdict::Pending { left } => self.requeue(index, left),
            Verdict::Took { lease, left } => {
                entry.took(candidate, left);
                entry.claim = claim;
                if acked {
                    self.make_ready(index, now);
                } else {
                    self.park_leased(index, lease, now, rules);
                }
            }
            Verdict::TookAutoAck { left } => {
                entry.took(candidate, left);
                let gathered = entry.count >= rules.window_batch;
                if left == 0 && !moved {
                    self.make_idle(index);
                } else if rules.is_windowed() && !gathered {
                    self.park(index, now.plus(rules.deferral.window), false, now);
                } else {
                    self.make_ready(index, now);
                }
            }
            Verdict::Leased { .. } if released => self.make_ready(index, now),
            Verdict::Leased { rest } => self.park_leased(index, rest, now, rules),
            Verdict::Deferred { rest } => {
                let gathered = rules.is_windowed() && entry.count >= rules.window_batch;
                if moved && gathered && !rules.is_delayed() {
                    self.make_ready(index, now);
                } else {
                    self.park(index, now.plus(rest), false, now);
                }
            }
            Verdict::Empty { .. } if moved => self.make_ready(index, now),
            Verdict::Empty { hidden } => {
                let waited = now.since(entry.pending_since(now));
                if hidden && !rules.is_plain() && waited < rules.patience() {
                    self.park(index, now.plus(rules.probe()), false, now);
                } else {
                    self.make_idle(index);
                }
            }
        }
    }

    /// A lease of the partition ended: that of `claim`, if the broker knows.
    pub(crate) fn released(&mut self, index: u32, claim: Option<ClaimId>, release: Release, now: Millis) {
        self.ensure(index);
        let entry = &mut self.entries[index as usize];
        // An ack of an earlier lease says nothing about the one that the entry is parked for.
        let current = claim == Some(entry.claim);
        match (entry.state, release) {
            (State::Ready, _) | (State::Idle, Release::Covered) => {}
            (State::Inflight, _) => {
                entry.epoch = entry.epoch.wrapping_add(1);
                entry.set_released(true);
                let of_this = claim.is_none_or(|claim| claim == ClaimId::of(entry.ticket()));
                entry.set_acked(entry.acked() || of_this);
            }
            (State::Wheel, Release::Covered) if current && entry.count == 0 && entry.drained() => {
                self.make_idle(index);
            }
            (State::Wheel, Release::Retry { .. }) if claim.is_some() && !current => {
                self.make_ready(index, now)
            }
            (State::Idle | State::Wheel, Release::Retry { rest }) => {
                self.park(index, now.plus(rest), true, now);
            }
            (State::Idle | State::Wheel, _) => self.make_ready(index, now),
        }
    }

    /// PostgreSQL says that the partition has something pending.
    pub(crate) fn reseed_row(&mut self, index: u32, now: Millis, rules: &Rules) {
        self.ensure(index);
        let entry = &mut self.entries[index as usize];
        match entry.state {
            State::Ready => {}
            State::Idle if rules.is_delayed() => {
                entry.set_pending(now);
                self.park(index, now.plus(rules.probe()), false, now);
            }
            State::Idle => {
                entry.set_pending(now);
                self.make_ready(index, now);
            }
            // What the row has seen may lie behind the batch that is leased: its ack must not end in Idle.
            State::Wheel if !rules.is_plain() => entry.set_drained(false),
            State::Wheel | State::Inflight => self.make_ready(index, now),
        }
    }

    /// Due WHEEL entries become READY. Answers how many.
    pub(crate) fn promote_due(&mut self, now: Millis) -> u32 {
        let mut promoted = 0;
        while let Some(index) = self.wheel.pop_due(&mut self.entries, now) {
            // The wheel has let go of it already.
            self.entries[index as usize].state = State::Idle;
            self.make_ready(index, now);
            promoted += 1;
        }
        promoted
    }

    /// Every entry whose visibility is deferred becomes READY: the queue holds messages back for less long than
    /// when they were parked.
    pub(crate) fn promote_deferred(&mut self, now: Millis) {
        for index in 0..self.entries.len() {
            let entry = &self.entries[index];
            if entry.state == State::Wheel && !entry.leased() {
                self.make_ready(index as u32, now);
            }
        }
    }

    /// The partition is gone.
    pub(crate) fn forget(&mut self, index: u32) {
        if (index as usize) < self.entries.len() {
            self.make_idle(index);
            self.entries[index as usize].tag = 0;
        }
    }

    /// So many messages are pending, and this is its tag, unless the entry knows better.
    pub(crate) fn estimate(&mut self, index: u32, messages: u64, tag: u64) {
        let Some(entry) = self.entries.get_mut(index as usize) else { return };
        if entry.tag == 0 {
            entry.tag = tag;
        }
        if entry.count == 0 && entry.state == State::Ready {
            entry.count = saturate(messages);
            self.ready_messages += u64::from(entry.count);
        }
    }

    pub(crate) fn set_tag(&mut self, index: u32, tag: u64) -> bool {
        let entry = self.entries.get_mut(index as usize);
        entry.map(|entry| entry.tag = tag).is_some()
    }

    pub(crate) fn next_due(&self) -> Option<Millis> {
        self.wheel.next_due()
    }

    pub(crate) fn ready_messages(&self) -> u64 {
        self.ready_messages
    }

    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        (self.ready.len() as usize, self.wheel.len() as usize, self.inflight as usize)
    }

    pub(crate) fn oldest_ready(&self) -> Option<Millis> {
        self.ready.head().map(|index| self.entries[index as usize].at)
    }

    pub(crate) fn view(&self, index: u32, now: Millis) -> EntryView {
        EntryView::of(self.entries.get(index as usize).unwrap_or(&Entry::IDLE), now)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.wheel.memory_bytes()
    }

    /// Entries exist up to the highest index that an event has named.
    fn ensure(&mut self, index: u32) {
        let wanted = index as usize + 1;
        let missing = wanted.saturating_sub(self.entries.len());
        if missing > 0 {
            grow::reserve(&mut self.entries, missing);
            self.entries.resize(wanted, Entry::IDLE);
        }
    }

    /// Takes an entry out of the list or the flight that it is in.
    fn detach(&mut self, index: u32) {
        let entry = &mut self.entries[index as usize];
        let (state, count) = (entry.state, entry.count);
        entry.state = State::Idle;
        match state {
            State::Idle => {}
            State::Inflight => self.inflight -= 1,
            State::Wheel => self.wheel.remove(&mut self.entries, index),
            State::Ready => {
                self.ready_messages -= u64::from(count);
                self.ready.remove(&mut self.entries, index);
            }
        }
    }

    /// To the end of the ready list.
    fn make_ready(&mut self, index: u32, now: Millis) {
        self.detach(index);
        let entry = &mut self.entries[index as usize];
        entry.state = State::Ready;
        entry.at = now;
        entry.set_leased(false);
        self.ready_messages += u64::from(entry.count);
        self.ready.push_back(&mut self.entries, index);
        self.woken = self.woken.saturating_add(1);
    }

    /// Back to the head of the ready list: who has not been looked at keeps its turn, or a busy partition ahead of
    /// it could starve it.
    fn requeue(&mut self, index: u32, count: u64) {
        self.detach(index);
        let entry = &mut self.entries[index as usize];
        entry.state = State::Ready;
        entry.count = saturate(count);
        self.ready_messages += u64::from(entry.count);
        self.ready.push_front(&mut self.entries, index);
        self.woken = self.woken.saturating_add(1);
    }

    fn park_leased(&mut self, index: u32, rest: Duration, now: Millis, rules: &Rules) {
        let until = now.plus(rest).plus(rules.pad).min(now.plus(rules.revisit_max));
        self.park(index, until, true, now);
    }

    fn park(&mut self, index: u32, until: Millis, leased: bool, now: Millis) {
        if until <= now {
            return self.make_ready(index, now);
        }
        self.detach(index);
        let entry = &mut self.entries[index as usize];
        entry.state = State::Wheel;
        entry.at = until;
        entry.set_leased(leased);
        self.wheel.insert(&mut self.entries, index, now);
    }

    /// The epoch outlives the stay: a claim in flight must not find it unmoved.
    fn make_idle(&mut self, index: u32) {
        self.detach(index);
        let entry = &mut self.entries[index as usize];
        entry.count = 0;
        entry.clear_flags();
    }
}

impl Entry {
    /// A claim took messages: what is known to be pending is what it left behind, and whatever was marked while it
    /// was under way, even if the claim has seen some of that.
    fn took(&mut self, candidate: &Candidate, left: u64) {
        let mut pending = saturate(left);
        if self.epoch != candidate.epoch {
            pending = pending.saturating_add(self.count.saturating_sub(candidate.count).max(1));
        }
        self.count = pending;
        self.set_drained(left == 0);
    }
}

fn saturate(messages: u64) -> u16 {
    u16::try_from(messages).unwrap_or(u16::MAX)
}
