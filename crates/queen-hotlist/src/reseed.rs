use std::time::Duration;

use queen_types::{PartitionId, Timestamp};

use crate::Millis;
use crate::checkout::RingId;
use crate::options::ReseedOptions;

/// Most rows of a page.
pub const PAGE_ROWS: usize = 10_000;
/// Most pages of one walk.
pub const PAGES_MAX: u32 = 200;
/// A walk that has shown no page for as long is taken for lost, and another may begin.
const LOST_AFTER: Duration = Duration::from_secs(120);
/// Shortest pause after a failed walk; it doubles up to the interval.
const PAUSE: Duration = Duration::from_secs(2);

/// What a walk looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkKind {
    /// Every partition of the queue.
    Full,
    /// Partitions written within the time before the first page.
    Windowed {
        /// How far back.
        look_back: Duration,
    },
}

/// Where a page ended: the next one begins behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// `last_write_at` of the last row.
    pub last_write_at: Timestamp,
    /// Its partition.
    pub partition: PartitionId,
}

/// A walk under way. Ended once, by value, with [`HotQueue::end_walk`](crate::HotQueue::end_walk).
#[derive(Debug)]
#[must_use = "the ring starts no other walk until this one has ended"]
pub struct Walk {
    ring: RingId,
    ticket: u64,
    kind: WalkKind,
    cursor: Option<Cursor>,
    cutoff: Option<Timestamp>,
    pages: u32,
    truncated: bool,
}

impl Walk {
    /// The ring that rows land on.
    pub fn ring(&self) -> RingId {
        self.ring
    }

    /// What it looks at.
    pub fn kind(&self) -> WalkKind {
        self.kind
    }

    /// Rows at or before are done. `None`: the walk begins at the beginning.
    pub fn cursor(&self) -> Option<Cursor> {
        self.cursor
    }

    /// The oldest `last_write_at` of a windowed walk, once its first page has fixed it.
    pub fn cutoff(&self) -> Option<Timestamp> {
        self.cutoff
    }
}

/// One page as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// How many rows it had; fewer than [`PAGE_ROWS`] end the walk.
    pub rows: usize,
    /// Its last row; `None` keeps the cursor.
    pub last: Option<Cursor>,
    /// The cutoff that the statement applied; the first page's is kept.
    pub cutoff: Option<Timestamp>,
}

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkEnd {
    /// All its pages are on the ring.
    Done,
    /// A page could not be read, or the walk was given up.
    Failed,
}

/// When one ring is walked.
#[derive(Debug)]
pub(crate) struct Reseed {
    /// This ring's share of the span, in units of 2^-32.
    phase: u32,
    /// A full walk is owed whatever the time: the first one, a failed one, a repair.
    owes_full: bool,
    full_at: Millis,
    windowed_at: Millis,
    /// Nothing is due before; moved by failures.
    not_before: Millis,
    failures: u32,
    under_way: Option<UnderWay>,
    /// Where a full walk goes on that its page limit cut short.
    resume: Option<Cursor>,
}

#[derive(Debug)]
struct UnderWay {
    ticket: u64,
    seen_at: Millis,
}

impl Reseed {
    pub(crate) fn new(phase: u32, now: Millis) -> Reseed {
        Reseed {
            phase,
            owes_full: true,
            full_at: now,
            windowed_at: now,
            not_before: now,
            failures: 0,
            under_way: None,
            resume: None,
        }
    }

    /// A full walk is owed, from the beginning; one under way does not count.
    pub(crate) fn owe(&mut self) {
        self.owes_full = true;
        self.resume = None;
    }

    /// When [`Reseed::start`] next has something to start.
    pub(crate) fn due_at(&self, options: &ReseedOptions) -> Millis {
        let due = if self.owes_full {
            self.not_before
        } else if options.full.is_zero() {
            self.windowed_at.max(self.not_before)
        } else {
            self.windowed_at.min(self.full_at).max(self.not_before)
        };
        match &self.under_way {
            Some(walk) => due.max(walk.seen_at.plus(LOST_AFTER)),
            None => due,
        }
    }

    pub(crate) fn start(
        &mut self,
        ring: RingId,
        ticket: u64,
        options: &ReseedOptions,
        now: Millis,
    ) -> Option<Walk> {
        if self.due_at(options) > now {
            return None;
        }
        // A walk under way at this point is lost, and so is the knowledge of what it had seen.
        let lost = self.under_way.take().is_some();
        let full = self.owes_full || lost || options.full.is_zero() || self.full_at <= now;
        self.owes_full = false;
        self.under_way = Some(UnderWay { ticket, seen_at: now });
        let kind = if full { WalkKind::Full } else { WalkKind::Windowed { look_back: options.look_back() } };
        let cursor = if full { self.resume } else { None };
        Some(Walk { ring, ticket, kind, cursor, cutoff: None, pages: 0, truncated: false })
    }

    /// A page is on the ring; true when there is another.
    pub(crate) fn page(&mut self, walk: &mut Walk, page: Page, now: Millis) -> bool {
        let Some(under_way) = self.under_way.as_mut().filter(|it| it.ticket == walk.ticket) else {
            return false;
        };
        under_way.seen_at = now;
        walk.pages += 1;
        walk.cursor = page.last.or(walk.cursor);
        walk.cutoff = walk.cutoff.or(page.cutoff);
        if page.rows < PAGE_ROWS {
            return false;
        }
        walk.truncated = walk.pages >= PAGES_MAX;
        !walk.truncated
    }

    /// Ends a walk; answers the failures in a row when their number is worth a warning.
    pub(crate) fn end(
        &mut self,
        walk: &Walk,
        end: WalkEnd,
        options: &ReseedOptions,
        now: Millis,
    ) -> Option<u32> {
        self.under_way.take_if(|it| it.ticket == walk.ticket)?;
        let full = walk.kind == WalkKind::Full;
        match end {
            WalkEnd::Failed => return self.failed(full, options, now),
            WalkEnd::Done if walk.truncated => self.cut_short(full, walk.cursor),
            WalkEnd::Done if full => {
                self.resume = None;
                self.full_at = self.later(now, options.full);
            }
            WalkEnd::Done => {}
        }
        self.failures = 0;
        self.not_before = now;
        self.windowed_at = self.later(now, options.interval);
        None
    }

    /// The rest is owed. A walk that was asked for meanwhile begins at the beginning all the same.
    fn cut_short(&mut self, full: bool, cursor: Option<Cursor>) {
        if full && !self.owes_full {
            self.resume = cursor;
        }
        self.owes_full = true;
    }

    fn failed(&mut self, full: bool, options: &ReseedOptions, now: Millis) -> Option<u32> {
        self.owes_full |= full;
        self.failures = self.failures.saturating_add(1);
        let pause = PAUSE.saturating_mul(1 << (self.failures - 1).min(16));
        self.not_before = now.plus(pause.min(options.interval.max(PAUSE)));
        (self.failures == 3 || self.failures > 3 && self.failures.is_power_of_two()).then_some(self.failures)
    }

    fn later(&self, now: Millis, interval: Duration) -> Millis {
        let span = ReseedOptions::span(interval);
        now.plus(interval).plus(span.mul_f64(f64::from(self.phase) / 4_294_967_296.0))
    }
}
