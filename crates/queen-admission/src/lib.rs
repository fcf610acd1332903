//! How many write transactions may be open at once, and whose turn it is.
//!
//! A database has a number of concurrent commits at which it does the most work: fewer leave it waiting for its disk,
//! more make it wait for itself. The [`Arbiter`] finds that number while it works, and shares it out over four
//! [lanes](Lane). The [`Gate`] is the arbiter for tasks: a [`Slot`] is the right to have one transaction open.
//!
//! What decides:
//! - the [`Budget`](law::Budget) bounds the sum of all lanes. It grows while requests are held back by it alone, and
//!   shrinks when slots live much longer than the flush cycle, which the [commit trains](trains) tell;
//! - each lane has a cap, moved by probes: a raise is kept if it brings more work, a cut if it costs none;
//! - a free slot goes to a lane below its share first, in the order ack, pop, push, maintenance; within a lane tenants
//!   take turns.
//!
//! Nothing here reads a clock or starts a task. An arbiter that has nothing to do needs no tick:
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use queen_admission::{Gate, Lane, Options};
//! use queen_types::TenantId;
//!
//! # async fn example(now: fn() -> Duration, sleep: impl AsyncFn(Duration)) {
//! let options = Options::default();
//! let (gate, warnings) = Gate::new(&options, Arc::new(now));
//! // The task that ticks.
//! let ticks = async {
//!     loop {
//!         gate.busy().await;
//!         sleep(options.tick).await;
//!         gate.tick(now(), None);
//!     }
//! };
//! // A task that commits.
//! let commits = async {
//!     let slot = gate.acquire(Lane::Push, TenantId::DEFAULT).await?;
//!     // A connection is taken here, statements run, and the last one commits:
//!     let before = now();
//!     slot.committed_work(now() - before, 12);
//!     Ok::<(), queen_admission::Refused>(())
//! };
//! # let _: (_, &dyn Future<Output = ()>) = (commits, &ticks);
//! # }
//! ```

pub mod law;
pub mod metrics;
pub mod trains;

mod arbiter;
mod caps;
mod gate;
mod lane;
mod options;
mod slots;
mod verdict;
mod waiters;

pub use arbiter::{Answer, Arbiter, Expired, Grant, Ticked};
pub use caps::CapStep;
pub use gate::{Clock, Gate, Refused, Slot};
pub use lane::{Lane, PerLane, WaitCounts};
pub use law::{Mode, Moved, Reason};
pub use metrics::{LaneSnapshot, Snapshot};
pub use options::{Limits, Options, RangeError, Warning};
pub use slots::SlotId;
pub use trains::TrainStats;
pub use verdict::PopSample;
pub use waiters::WaiterId;
