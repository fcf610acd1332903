//! Values of calls on consumer groups.

use queen_types::{PartitionId, Timestamp};

pub use queen_storage::groups::{CursorRow as GroupCursor, GroupRow as GroupSummary, SeekTo};

/// Answer to a seek of a whole queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sought {
    /// Cursors that were set.
    pub partitions: u64,
}

/// Answer to a seek of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoughtPartition {
    /// The partition.
    pub partition: PartitionId,
}

/// Answer to the deletion of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupDeleted {
    /// Cursors that went.
    pub partitions: u64,
    /// Whether a registration went.
    pub registration: bool,
}

/// Answer to a change of the start point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubscriptionChanged {
    /// Where the group begins now.
    pub from: Timestamp,
    /// Queues that it is registered on.
    pub queues: u64,
}
