//! Values of the data plane: push, pop, ack, transaction, lease.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use queen_types::{
    AckStatus, Group, LeaseId, MessageId, Namespace, PartitionId, PartitionName, PushStatus, QueueName,
    StartPoint, Task, Timestamp, TransactionId, Uuid,
};

/// One message to append.
#[derive(Debug, Clone)]
pub struct PushItem {
    /// Queue, created on first use.
    pub queue: QueueName,
    /// Partition, created on first use.
    pub partition: PartitionName,
    /// Deduplication key; absent = the message id.
    pub transaction_id: Option<TransactionId>,
    /// One JSON value, kept byte for byte.
    pub payload: Bytes,
    /// Stored and delivered; only the transaction route sets it.
    pub trace_id: Option<Uuid>,
}

/// What became of one pushed item.
#[derive(Debug, Clone)]
pub struct PushResult {
    /// The message's id; for a duplicate the id of the message that was kept.
    pub message_id: MessageId,
    /// The effective deduplication key.
    pub transaction_id: TransactionId,
    /// The verdict.
    pub status: PushStatus,
    /// Why, with [`PushStatus::Failed`].
    pub error: Option<String>,
}

/// The answer to a push.
#[derive(Debug, Clone)]
pub struct PushAnswer {
    /// One per item, in order.
    pub results: Vec<PushResult>,
    /// Push maintenance kept all of it from the database.
    pub diverted: bool,
}

/// Where a pop looks.
#[derive(Debug, Clone)]
pub enum PopTarget {
    /// Any ready partition of a queue.
    Queue(QueueName),
    /// Exactly one partition.
    Partition(QueueName, PartitionName),
    /// Any ready partition of every queue whose keys are equal; at least one is given.
    Discovery {
        /// First key.
        namespace: Option<Namespace>,
        /// Second key.
        task: Option<Task>,
    },
}

/// One pop.
#[derive(Debug, Clone)]
pub struct PopRequest {
    /// Where to look.
    pub target: PopTarget,
    /// The consumer group.
    pub group: Group,
    /// Most messages in the answer, at least 1.
    pub batch: u32,
    /// Most partitions claimed; `None` = no cap.
    pub partitions: Option<u32>,
    /// How long to wait for messages; `None` answers at once. Already clamped by the caller to the broker's maximum.
    pub wait: Option<Duration>,
    /// Commit the cursor with the claim: at most once.
    pub auto_ack: bool,
    /// Lease in seconds; `None` = the queue's.
    pub lease_seconds: Option<u32>,
    /// Start of a group that this pop introduces; `None` = the broker's default mode. Queue mode ignores it.
    pub start: Option<StartPoint>,
}

/// One delivered message.
#[derive(Debug, Clone)]
pub struct Message {
    /// Message id.
    pub id: MessageId,
    /// Its deduplication key.
    pub transaction_id: Box<str>,
    /// Trace id, when the producer gave one.
    pub trace_id: Option<Uuid>,
    /// The payload's bytes as pushed.
    pub payload: Bytes,
    /// Authenticated subject of the producer.
    pub producer_sub: Option<Arc<str>>,
}

/// The messages of one partition, in offset order.
#[derive(Debug, Clone)]
pub struct PartitionBatch {
    /// Id of the partition.
    pub partition_id: PartitionId,
    /// Name of the partition.
    pub partition: PartitionName,
    /// How often this group has been given this head, from 1; always 1 with auto-ack.
    pub delivery_attempt: u32,
    /// Messages with the time their segment was appended.
    pub messages: Vec<(Timestamp, Message)>,
}

/// What a pop delivered. No partitions = nothing (204 on the wire).
#[derive(Debug, Clone)]
pub struct PopAnswer {
    /// The lease that covers every partition below; `None` with auto-ack.
    pub lease: Option<LeaseId>,
    /// What was claimed, in the order of the answer.
    pub partitions: Vec<PartitionBatch>,
}

impl PopAnswer {
    /// An answer without messages.
    pub fn empty() -> Self {
        PopAnswer { lease: None, partitions: Vec::new() }
    }

    /// Number of messages.
    pub fn len(&self) -> usize {
        self.partitions.iter().map(|p| p.messages.len()).sum()
    }

    /// Whether nothing was delivered.
    pub fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }
}

/// One acknowledgment.
#[derive(Debug, Clone)]
pub struct AckItem {
    /// The partition as the client named it: `None` when it sent none, `Err` with its text when that is no UUID.
    pub partition: Option<Result<PartitionId, String>>,
    /// Key of the message. Kept as text: a key that cannot exist is unresolvable, not malformed.
    pub transaction_id: String,
    /// What became of it.
    pub status: AckStatus,
    /// The lease it was delivered under.
    pub lease: Option<LeaseId>,
    /// Text for the dead-letter record.
    pub error: Option<String>,
}

/// Answer to one acknowledgment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AckResult {
    /// Whether it took effect (or had already).
    pub success: bool,
    /// Why not.
    pub error: Option<String>,
    /// The lease of the group call is gone.
    pub lease_released: bool,
    /// This message was dead-lettered by this call.
    pub dlq: bool,
    /// It had been committed before; nothing changed.
    pub noop: bool,
    /// Completed, but above a failed one: it will be delivered again.
    pub redelivers: bool,
    /// Given up without a dead letter.
    pub dropped: bool,
    /// Not performed, because too much is under way; acking again later may work.
    pub overloaded: bool,
}

/// Answer to a lease extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseExtension {
    /// How many partitions were renewed.
    pub renewed: u32,
    /// The earliest expiry among them.
    pub expires_at: Option<Timestamp>,
}

/// One operation of a transaction.
#[derive(Debug, Clone)]
pub enum TxnOperation {
    /// Append a message.
    Push(PushItem),
    /// Settle a message.
    Ack {
        /// The group.
        group: Group,
        /// The acknowledgment; its partition is present and valid.
        partition: PartitionId,
        /// Key of the message.
        transaction_id: String,
        /// What became of it.
        status: AckStatus,
        /// Its lease, when the operation names one.
        lease: Option<LeaseId>,
        /// Text for the dead-letter record.
        error: Option<String>,
    },
}

/// One transaction: all or nothing.
#[derive(Debug, Clone)]
pub struct TxnRequest {
    /// In request order.
    pub operations: Vec<TxnOperation>,
    /// Leases the caller believes it holds.
    pub required_leases: Vec<LeaseId>,
}

/// Answer to one operation of a committed transaction, in request order.
#[derive(Debug, Clone)]
pub enum TxnResult {
    /// A push.
    Push {
        /// The effective key.
        transaction_id: TransactionId,
        /// The message's id.
        message_id: MessageId,
        /// Its queue.
        queue: QueueName,
        /// Repeats an earlier item of the same transaction.
        duplicate: bool,
    },
    /// An ack.
    Ack {
        /// The key as sent.
        transaction_id: String,
        /// Dead-lettered by this transaction.
        dlq: bool,
    },
}

/// Why a transaction was rolled back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TxnReason {
    /// A pushed key exists already.
    Duplicate,
    /// Lease or resolution failure of an ack.
    AckRejected,
    /// Malformed.
    BadRequest,
    /// A database failure.
    DbError,
}

impl TxnReason {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            TxnReason::Duplicate => "duplicate",
            TxnReason::AckRejected => "ack_rejected",
            TxnReason::BadRequest => "bad_request",
            TxnReason::DbError => "db_error",
        }
    }
}

/// Outcome of a transaction.
#[derive(Debug, Clone)]
pub enum TxnOutcome {
    /// Everything is visible.
    Committed(Vec<TxnResult>),
    /// Nothing is.
    RolledBack {
        /// The class.
        reason: TxnReason,
        /// In words.
        error: String,
        /// With [`TxnReason::Duplicate`]: flat index and kept message id of every duplicate.
        duplicates: Vec<(usize, MessageId)>,
    },
}
