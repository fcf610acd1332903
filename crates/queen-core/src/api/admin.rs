//! Values of administration: configure, listings, depth, dead letters.

use bytes::Bytes;
pub use queen_storage::admin::DlqFilter;
use queen_types::{
    MessageId, OptionsEdit, PartitionId, PartitionName, QueueId, QueueName, QueueOptions, Timestamp, Uuid,
};

/// A configure call: creates the queue when it is missing, from the defaults of [`QueueOptions`].
#[derive(Debug, Clone)]
pub struct ConfigureRequest {
    /// The queue.
    pub queue: QueueName,
    /// True: options that `edit` leaves out go back to their defaults. False: they keep their value.
    pub replace: bool,
    /// The options given; a JSON `null` arrives here as the option's default.
    pub edit: OptionsEdit,
}

/// Answer to configure.
#[derive(Debug, Clone)]
pub struct Configured {
    /// Id of the queue.
    pub queue_id: QueueId,
    /// Every effective option.
    pub options: QueueOptions,
}

/// Message counts. `failed` is not tracked and always null on the wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Retained messages.
    pub total: i64,
    /// Not yet consumed by the furthest-behind view.
    pub pending: i64,
    /// Under a live lease.
    pub processing: i64,
    /// total - pending - dead letters, at least 0.
    pub completed: i64,
    /// Dead letters.
    pub dead_letter: i64,
}

/// One queue of the listing.
#[derive(Debug, Clone)]
pub struct QueueSummary {
    /// Row id.
    pub id: QueueId,
    /// Name.
    pub name: QueueName,
    /// First discovery key.
    pub namespace: String,
    /// Second discovery key.
    pub task: String,
    /// Creation time.
    pub created_at: Timestamp,
    /// Number of partitions.
    pub partitions: i64,
    /// Bytes of stored segments.
    pub retained_bytes: i64,
    /// Number of stored segments.
    pub segments: i64,
    /// Counts over all partitions.
    pub counts: Counts,
}

/// One partition of a queue's detail.
#[derive(Debug, Clone)]
pub struct PartitionSummary {
    /// Row id.
    pub id: PartitionId,
    /// Name.
    pub name: PartitionName,
    /// Creation time.
    pub created_at: Timestamp,
    /// Counts.
    pub counts: Counts,
    /// Append time of the oldest retained segment.
    pub oldest_message: Option<Timestamp>,
    /// Append time of the newest segment.
    pub newest_message: Option<Timestamp>,
}

/// One queue in detail.
#[derive(Debug, Clone)]
pub struct QueueDetail {
    /// What the listing says of it.
    pub summary: QueueSummary,
    /// Its options.
    pub options: QueueOptions,
    /// Its partitions, by name.
    pub partitions: Vec<PartitionSummary>,
}

/// Exact backlog of a queue.
#[derive(Debug, Clone)]
pub struct Depth {
    /// Every partition by name: pending, and how much of it is under a live lease.
    pub partitions: Vec<(PartitionName, i64, i64)>,
}

/// One namespace or task with its totals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyTotals {
    /// The namespace or task.
    pub key: String,
    /// Queues under it.
    pub queues: i64,
    /// Their partitions.
    pub partitions: i64,
    /// Retained messages.
    pub total: i64,
    /// Pending messages.
    pub pending: i64,
}

/// Answer to a queue deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueDeleted {
    /// Whether there was one.
    pub existed: bool,
}

/// One dead letter.
#[derive(Debug, Clone)]
pub struct DeadLetter {
    /// Record id.
    pub id: Uuid,
    /// The message's id, unless its segment was gone.
    pub message_id: Option<MessageId>,
    /// Its key.
    pub transaction_id: String,
    /// Its partition.
    pub partition_id: PartitionId,
    /// Name of the partition.
    pub partition: PartitionName,
    /// Its queue.
    pub queue: QueueName,
    /// The group that gave it up.
    pub group: String,
    /// Why.
    pub error: Option<String>,
    /// Retries used.
    pub retry_count: i32,
    /// The payload's bytes as pushed; `None` when retention had deleted it.
    pub payload: Option<Bytes>,
    /// Subject of the producer.
    pub producer_sub: Option<String>,
    /// When the message was stored.
    pub message_created_at: Option<Timestamp>,
    /// When it was given up.
    pub failed_at: Timestamp,
}

/// A page of dead letters, newest failure first.
#[derive(Debug, Clone)]
pub struct DlqPage {
    /// The records.
    pub records: Vec<DeadLetter>,
    /// All that match.
    pub total: i64,
}
