//! Values of calls on stored messages and dead letters.

use queen_types::{Offset, PartitionId, Uuid};

pub use queen_storage::messages::{
    BrowseFilter, BrowsePage, MessageDetail, Mode as ConsumerMode, Replay, StoredMessage,
};

/// Which dead letter is to be replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayTarget {
    /// By its record id.
    Record(Uuid),
    /// The newest of a message, of any group.
    Message {
        /// Partition of the message.
        partition: PartitionId,
        /// Its key.
        transaction_id: String,
    },
}

/// What became of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayOutcome {
    /// The message is at the end of its partition, the dead letter gone.
    Moved {
        /// What was replayed.
        replay: Replay,
        /// Id of the new message.
        message_id: queen_types::MessageId,
        /// Its offset.
        offset: Offset,
    },
    /// A message with its key is stored already; nothing was written.
    Duplicate {
        /// What would have been replayed.
        replay: Replay,
        /// Id of the stored message.
        message_id: queen_types::MessageId,
    },
    /// There is no such dead letter, or somebody else was quicker.
    Missing,
    /// There is no payload to replay.
    Empty(Replay),
    /// Pushes are kept from the database at the moment, so nothing was done.
    Maintenance,
}
