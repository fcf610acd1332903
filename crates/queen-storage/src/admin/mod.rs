//! Administration: configure, listings, depth, dead letters and deletion of queues.
//!
//! Free functions over the pool. Counts are computed from the live tables at the time of the call:
//! index probes at the ends of each partition's log, no message is read.
//!
//! Dropping the future of any function here abandons its statement; a transaction that was not committed leaves
//! nothing behind, one whose COMMIT was under way may have happened.

mod configure;
mod delete;
mod depth;
mod dlq;
mod listing;
mod options_row;
mod pins;
pub(crate) mod row;
pub mod sql;

pub use configure::{configure, load_queue};
pub use delete::{DeletedQueue, delete_queue, partition_ids_of_queue};
pub use depth::{PartitionDepth, depth};
pub use dlq::{DeadLetterRow, DlqFilter, DlqPage, dlq_page};
pub use listing::{
    Counts, KeyTotals, PartitionRow, QueueDetail, QueueListing, Stored, namespaces, queue_detail, queue_list,
    tasks,
};
pub use options_row::QueueRow;
pub use pins::{Pin, queue_pins};
