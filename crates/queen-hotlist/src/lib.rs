//! The hot list: which partitions of a queue probably have work for a group, so that a pop asks PostgreSQL about a
//! few named partitions instead of searching for them.
//!
//! Pure: no socket, file, clock or database. Time comes in as [`Millis`], and what PostgreSQL said comes in as
//! [`Verdict`], [`Release`] and reseed rows. One [`HotQueue`] stands for one (tenant, queue) of one broker and is
//! meant to live behind one mutex that is held for a few calls and never across a wait.
//!
//! # What may be wrong, and what may not
//!
//! PostgreSQL decides what exists; this is a hint. An entry too many costs one empty claim. An entry too few delays
//! a message until the caller's next walk over the queue's partitions ([`HotQueue::reseed_row`]), and happens only when an
//! announcement was lost: as long as every commit is marked and every checkout checked in, no partition with work is
//! ever taken for idle.
//!
//! # A ring
//!
//! Each group has a ring, made by its first consumer ([`HotQueue::ring`]), never by a mark. A partition is in exactly
//! one of four states in it:
//!
//! | state | meaning |
//! |---|---|
//! | [`State::Idle`] | nothing is known to be pending |
//! | [`State::Ready`] | in the ready list, first in first out |
//! | [`State::Wheel`] | parked until a time: visibility deferred, or a live lease |
//! | [`State::Inflight`] | checked out by a pop |
//!
//! `delayed` and `window` are the queue's [`Deferral`]; a queue with neither is plain. `pad`, `revisit` and `batch` are
//! [`Options::pad`], [`Options::revisit_max`] and [`Options::window_batch`]. "Moved": the epoch is no longer that of the
//! checkout, so something happened that the claim may not have seen.
//!
//! | event | Idle | Ready | Wheel | Inflight |
//! |---|---|---|---|---|
//! | mark: epoch + 1, count + n, pending since now | delayed: Wheel at now + delayed + pad; window: Ready if count ≥ batch, else Wheel at now + window; plain: Ready | – | delayed: –; window: Ready if count ≥ batch (parked for a lease: and its time is at most pad away); plain: Ready if its time is at most pad away | – |
//! | checkout | – | Inflight, drained off | what is due becomes Ready first | – |
//! | `Took` | | | | count := left (+ marks since, at least 1, if moved); Wheel at min(now + lease + pad, now + revisit); Ready if this very lease ended meanwhile |
//! | `TookAutoAck` | | | | count as above; left = 0 and not moved: Idle; window and count < batch: Wheel at now + window; else Ready |
//! | `Leased` | | | | Wheel at min(now + rest + pad, now + revisit); Ready if any lease ended meanwhile |
//! | `Deferred` | | | | Wheel at now + rest; window: Ready if moved and count ≥ batch |
//! | `Empty` | | | | moved: Ready; plain, or nothing hidden: Idle; else Wheel in 50 ms (delayed: clamp(delayed, 50, 1000) ms) until max(delayed, window) + 2 pad + 1 s after the last mark, then Idle |
//! | `Pending` | | | | Ready at the head of the list, count := left |
//! | `NotEvaluated` | | | | Ready at the head of the list, count := 0 |
//! | released `Covered` | – | – | count = 0, drained, and the lease is the last that the ring knows: Idle; else Ready | epoch + 1 |
//! | released `Open` | Ready | – | Ready | epoch + 1 |
//! | released `Retry` | Wheel at now + rest | – | Wheel at now + rest; Ready if it is known to be another lease | epoch + 1 |
//! | reseed row | Ready; delayed: Wheel as for `Empty` | – | plain: Ready; else drained off | Ready: reclaims a lost checkout |
//!
//! A claim that says how much it left behind, and how long something stays hidden, spares the empty claims that would
//! find out: that is what `left`, `Deferred` and `Empty { hidden: false }` are for.
//!
//! # A pop
//!
//! ```
//! use std::time::Duration;
//! use queen_hotlist::{Deferral, HotQueue, Millis, Options, Release, Verdict};
//! use queen_types::{Group, PartitionId, PartitionName, Uuid};
//!
//! let mut queue = HotQueue::new(&Options::default(), Deferral::default(), 7, Millis(0));
//! let group = Group::queue_mode();
//! let ring = queue.ring(&group, Millis(0));
//!
//! // A push commits three messages: whoever is parked on the group has a reason to look.
//! let partition = PartitionId(Uuid::from_u128(1));
//! queue.mark(partition, &PartitionName::default(), 3, Millis(5));
//! let mut wakes = Vec::new();
//! queue.take_wakes(&mut wakes);
//! assert_eq!((wakes.len(), wakes[0].entries), (1, 1));
//!
//! // A pop of ten asks PostgreSQL about this partition and is told that it got everything, under a lease.
//! let mut checkout = queue.checkout(ring, 2, 10, Millis(6)).unwrap();
//! assert_eq!(checkout.candidates()[0].partition, partition);
//! checkout.note(0, Verdict::Took { lease: Duration::from_secs(60), left: 0 });
//! let claim = checkout.claim();
//! queue.checkin(checkout, Millis(7));
//!
//! // Parked for the lease, looked at again in time.
//! assert!(queue.next_due().is_some_and(|due| due <= Millis(1007)));
//!
//! // The ack covers everything, nothing came meanwhile: the partition is done with.
//! queue.released(ring, partition, Some(claim), Release::Covered, Millis(9));
//! assert!(queue.is_idle());
//! ```
//!
//! # Ending a checkout
//!
//! [`HotQueue::checkin`] consumes the [`Checkout`], and what has no verdict by then is `NotEvaluated`. So a guard that
//! checks in when it is dropped covers success, failure, a result that cannot be read and a dropped future alike, and
//! nothing can end a checkout twice. Whatever reaches the wrong place is ignored: every checkout has a ticket of its
//! own, and an entry that was reclaimed, forgotten or given out again no longer carries it.
//!
//! # Wakes and time
//!
//! Each change into Ready is counted for its ring and handed out by [`HotQueue::take_wakes`], so that the lock can be
//! let go before anybody is woken. [`HotQueue::next_due`] says when [`HotQueue::tick`] is worth calling; while nothing
//! is parked it is `None` and nothing has to run.
//!
//! # Cost
//!
//! A mark is one hash look-up and a few links for each ring; a checkout, a checkin and a release are a few links for
//! each partition. Nothing is allocated by marks of known partitions. Parked entries sit in a timer wheel without lazy
//! deletion, and move at most once a level on their way.
//!
//! A partition takes 40 bytes in each ring, and 37 to 43 once for its id, its name's pointer and its hash table slot,
//! all with at most an eighth of slack; the text of the name is usually shared with other holders. 100,000 partitions
//! with 4 groups take about 22 MiB, of which 3 are text of names. Adding a partition is constant on average; when the
//! hash table doubles, all are hashed again, which at a million partitions takes some tens of milliseconds.

mod checkout;
mod entry;
mod grow;
mod intern;
mod options;
mod queue;
mod ready;
mod ring;
mod stats;
mod time;
mod wheel;
mod work;

#[cfg(test)]
mod cost;

pub use checkout::{Candidate, Checkout, ClaimId, Release, RingId, Verdict};
pub use entry::{EntryView, State};
pub use options::{Deferral, Options};
pub use queue::{HotQueue, Wake};
pub use stats::{RingStats, Stats};
pub use time::Millis;
