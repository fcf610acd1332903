//! What to do next with the files, decided without I/O and without a clock.
//!
//! The driver asks for a [`Step`], does it, and tells what came of it. A cycle begins with [`Step::List`] and takes files
//! from the oldest on. Of a file, events are read and pushed batch by batch. Whatever a push says of each event is kept
//! here, so nothing that is stored is pushed again while this lives; after a crash the database answers duplicates.
//!
//! A transient failure ends the cycle where it is. A permanent one is narrowed down until single events are left that fail
//! by themselves; these are tried again, spaced, while the rest of the file goes on, and after the last attempt they are
//! set aside.

mod head;

use std::collections::VecDeque;
use std::time::Duration;

use head::Head;

/// Gaps between the attempts at an event that fails by itself; one more attempt than gaps.
const GAPS: [Duration; 4] = [
    Duration::from_millis(150),
    Duration::from_millis(300),
    Duration::from_millis(600),
    Duration::from_millis(1200),
];

/// How the drain paces itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainOptions {
    /// Between the beginnings of two cycles.
    pub flush: Duration,
    /// Events of one push, at least 1.
    pub batch_events: usize,
    /// Bytes of one push; a larger event is pushed alone.
    pub batch_bytes: usize,
    /// Files of a cycle while the database is well; otherwise it is one.
    pub files: usize,
    /// Transient failures in a row after which there is a pause.
    pub failures: u32,
    /// That pause.
    pub pause: Duration,
}

impl Default for DrainOptions {
    fn default() -> Self {
        DrainOptions {
            flush: Duration::from_millis(100),
            batch_events: 100,
            batch_bytes: 8 * 1024 * 1024,
            files: 10,
            failures: 10,
            pause: Duration::from_secs(5),
        }
    }
}

/// What is to be known of an event before it is pushed. Collisions of the hashes make batches smaller, nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// Hash of tenant, queue and partition.
    pub lane: u64,
    /// Hash of the lane and the transaction id.
    pub id: u64,
    /// Size.
    pub bytes: usize,
    /// It is an event. What is none is set aside.
    pub readable: bool,
}

/// Why an event cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The server's code.
    pub sqlstate: Option<String>,
    /// In words.
    pub error: String,
}

/// What became of a pushed event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is in the database, by this push or an earlier one.
    Stored,
    /// It is not, or nobody knows; a later attempt may do it.
    Transient,
    /// It is not, and the events of its lane in this push can never be stored together.
    Permanent(Reason),
}

/// Events that were read, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// What came after the last ones that were read.
    pub events: Vec<Meta>,
    /// Nothing comes behind them.
    pub end: bool,
}

/// What the driver has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing until that moment, or until [`Drain::news`]; `None`: only the latter.
    Rest(Option<Duration>),
    /// Say which files are complete, oldest first, having completed the one that is written if `finalize`.
    List {
        /// Complete the file that is written first.
        finalize: bool,
    },
    /// Read the events of a file from a position on.
    Read {
        /// The file.
        file: String,
        /// Events before it were read.
        from: u64,
    },
    /// Push events together. No two have the same lane and transaction id.
    Push {
        /// The file.
        file: String,
        /// Positions in the file, ascending.
        events: Vec<u64>,
    },
    /// The file cannot be read, however often it was tried: set it aside as a whole.
    Move {
        /// The file.
        file: String,
    },
    /// Every event is decided: set these aside, and delete the file.
    Finish {
        /// The file.
        file: String,
        /// What could not be stored.
        aside: Vec<(u64, Reason)>,
    },
}

/// The state machine.
#[derive(Debug)]
pub struct Drain {
    options: DrainOptions,
    healthy: bool,
    /// Transient failures in a row.
    failures: u32,
    /// Nothing happens before.
    pause_until: Duration,
    next_cycle: Duration,
    /// Something may be there.
    work: bool,
    /// Files of the cycle that runs, oldest first, and how many of them it may still take.
    cycle: Option<(VecDeque<String>, usize)>,
    head: Option<Head>,
}

impl Drain {
    /// A drain of a directory of which nothing is known.
    pub fn new(options: DrainOptions) -> Drain {
        Drain {
            options,
            healthy: true,
            failures: 0,
            pause_until: Duration::ZERO,
            next_cycle: Duration::ZERO,
            work: true,
            cycle: None,
            head: None,
        }
    }

    /// Something was spooled, or a file came back.
    pub fn news(&mut self) {
        self.work = true;
    }

    /// Whether the last thing that was heard of the database was good.
    pub fn is_healthy(&self) -> bool {
        self.healthy
    }

    /// The database was heard of by other means: a push was committed, or failed for a passing reason.
    pub fn heard(&mut self, healthy: bool) {
        self.healthy = healthy;
    }

    /// Whether it waits after too many failures in a row.
    pub fn is_pausing(&self, now: Duration) -> bool {
        now < self.pause_until
    }

    /// Ends the pause: somebody wants it now.
    pub fn hurry(&mut self) {
        self.pause_until = Duration::ZERO;
        self.next_cycle = Duration::ZERO;
        self.work = true;
    }

    /// Ends the cycle, because nothing may be pushed now.
    pub fn pause(&mut self) {
        self.cycle = None;
    }

    /// What to do at this moment; asking twice gives the same.
    pub fn step(&mut self, now: Duration) -> Step {
        loop {
            let Some((files, left)) = &mut self.cycle else { return self.between(now) };
            let Some(file) = files.front().filter(|_| *left > 0) else {
                self.cycle = None;
                continue;
            };
            let head = match &mut self.head {
                Some(head) if head.file == *file => head,
                head => head.insert(Head::new(file.clone())),
            };
            match head.step(now, &self.options) {
                Some(step) => return step,
                // Its last events rest, and nothing overtakes them.
                None => self.cycle = None,
            }
        }
    }

    fn between(&mut self, now: Duration) -> Step {
        let rests = self.head.as_ref().and_then(|head| head.rests_until(now));
        if !self.work && rests.is_none() {
            return Step::Rest(None);
        }
        let next = self.next_cycle.max(self.pause_until).max(rests.unwrap_or_default());
        if now < next {
            return Step::Rest(Some(next));
        }
        // A file that is written while an older one cannot be replayed may as well grow.
        Step::List { finalize: self.healthy || self.head.is_none() }
    }

    /// Answers [`Step::List`].
    pub fn listed(&mut self, now: Duration, files: Vec<String>) {
        self.next_cycle = now + self.options.flush;
        self.work = !files.is_empty();
        if self.head.as_ref().is_some_and(|head| !files.contains(&head.file)) {
            self.head = None;
        }
        let most = if self.healthy { self.options.files.max(1) } else { 1 };
        self.cycle = self.work.then(|| (files.into(), most));
    }

    /// Answers [`Step::Read`].
    pub fn read(&mut self, read: Read) {
        if let Some(head) = &mut self.head {
            head.read(read);
        }
    }

    /// Answers [`Step::Push`], verdicts in the order of its events.
    pub fn pushed(&mut self, now: Duration, verdicts: Vec<Verdict>) {
        let Some(head) = &mut self.head else { return };
        if head.pushed(now, verdicts) {
            self.healthy = true;
            self.failures = 0;
        } else {
            self.failed(now);
        }
    }

    /// Answers [`Step::Read`], and [`Step::Push`] before anything was pushed, when the file cannot be read.
    pub fn unreadable(&mut self, now: Duration) {
        if let Some(head) = &mut self.head {
            head.unreadable(now);
        }
    }

    fn failed(&mut self, now: Duration) {
        self.healthy = false;
        self.failures += 1;
        self.cycle = None;
        if self.failures >= self.options.failures.max(1) {
            self.failures = 0;
            self.pause_until = now + self.options.pause;
        }
    }

    /// Answers [`Step::Finish`] and [`Step::Move`].
    pub fn finished(&mut self) {
        self.head = None;
        if let Some((files, left)) = &mut self.cycle {
            files.pop_front();
            *left = left.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
