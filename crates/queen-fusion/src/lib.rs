//! Which waiting requests share the next commit.
//!
//! Pure: no socket, clock, task or lock. A [`Coalescer`] holds the requests that wait, by key (a partition); its owner
//! [submits](Coalescer::submit), [takes](Coalescer::take) the next bundle whenever one may fly, and reports it
//! [done](Coalescer::done). Nothing is held back to gather company: an idle owner flies at once, and whatever arrives
//! while bundles fly goes with the next one. So the size of a commit follows from the load and needs no setting.
//!
//! What always holds:
//! - items of one key fly in the order of their submission, and at most one bundle of a key flies at a time;
//! - a bundle takes the keys that have waited longest;
//! - two items of one key that share an id never fly together;
//! - the bounds of [`Limits`], except that a bundle always takes at least one item, however large.
//!
//! ```
//! use queen_fusion::{Coalescer, Item, Limits};
//!
//! let mut coalescer = Coalescer::new(Limits { bundles: 1, ..Limits::default() });
//! coalescer.submit("a", Item { work: 1, ids: vec![10], bytes: 100 });
//! let first = coalescer.take().expect("nothing flies");
//! coalescer.submit("a", Item { work: 2, ids: vec![11], bytes: 100 });
//! coalescer.submit("b", Item { work: 3, ids: vec![10], bytes: 100 });
//! assert!(coalescer.take().is_none(), "one bundle flies already");
//! coalescer.done(first.lanes.iter().map(|lane| &lane.key));
//! let second = coalescer.take().expect("both keys wait");
//! assert_eq!(second.lanes.len(), 2);
//! ```

mod coalescer;

pub use coalescer::{Bundle, BundleLane, Coalescer, Item, Limits};
