//! Background work on the log: retention, the notes it goes by, the removal of what nobody uses, and the leases that
//! let one broker at a time do it.
//!
//! Every call is one short transaction that commits by itself, bounded in rows. Dropping a call abandons its
//! statement: it happened as a whole or not at all, and the next cycle finds the rest.

mod cleanup;
mod lease;
mod marks;
mod retention;
pub mod sql;

pub use cleanup::{DlqDue, Unused};
pub use lease::{Claimed, Claims, Job, Task};
pub use retention::{Due, Look, Step};

pub(crate) use marks::Marks;
