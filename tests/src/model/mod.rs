//! The reference model: what a broker has to do, as plain vectors and rules of the delivery contract (`engine.md` 3 to
//! 6), without segments, SQL or time.
//!
//! Everything a test cannot know beforehand (ids, which ready partition a pop prefers) is taken from the broker's answer
//! after it was checked to be one of the right ones. Leases end when the test says so.

pub mod ack;
mod pop;
mod push;
mod transaction;

use std::collections::BTreeMap;

use bytes::Bytes;
use queen_core::api::PopTarget;
use queen_types::{
    Group, LeaseId, MessageId, Namespace, Offset, PartitionId, PartitionName, QueueName, Uuid,
};

/// Everything that a broker remembers.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// Queues by name. All of them exist: the test configures them first.
    pub queues: BTreeMap<QueueName, Queue>,
}

/// A queue.
#[derive(Debug, Clone)]
pub struct Queue {
    /// Discovery key.
    pub namespace: Namespace,
    /// Its options, as far as they count here.
    pub rules: Rules,
    /// Registered groups; `true`: the group began after the newest message.
    pub groups: BTreeMap<Group, bool>,
    /// Partitions, each with at least one message.
    pub partitions: BTreeMap<PartitionName, Partition>,
}

/// Options of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Retries before a message is given up.
    pub retry_limit: i32,
    /// Given up means dead-lettered, else dropped.
    pub dead_letters: bool,
    /// The deduplication window is not 0.
    pub dedup: bool,
    /// A failed ack makes the partition wait, longer than the test runs.
    pub backoff: bool,
    /// `redeliverSkipped`.
    pub redeliver_skipped: bool,
}

/// A partition.
#[derive(Debug, Clone, Default)]
pub struct Partition {
    /// Its row id, once the test has read it.
    pub id: Option<PartitionId>,
    /// Every message ever stored, by offset.
    pub messages: Vec<Message>,
    /// What lies below was deleted by retention.
    pub log_start: Offset,
    /// Cursors by group.
    pub cursors: BTreeMap<Group, Cursor>,
    /// Dead letters in the order they were filed.
    pub letters: Vec<Letter>,
}

/// A stored message.
#[derive(Debug, Clone)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// Its deduplication key.
    pub key: String,
    /// Its payload.
    pub payload: Bytes,
    /// Its trace.
    pub trace: Option<Uuid>,
    /// Its producer.
    pub producer: Option<String>,
    /// It is older than the deduplication window and the window of acks.
    pub aged: bool,
}

/// The state of a group on a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// Everything at or below is done.
    pub committed: Offset,
    /// The lease, dead or alive.
    pub lease: Option<Lease>,
    /// Retries used by the message at `retry_offset`.
    pub retries: i32,
    /// Whose retries they are.
    pub retry_offset: Option<Offset>,
    /// A failed ack made the partition wait.
    pub waiting: bool,
    /// Head of the last leased batch and how often it was delivered.
    pub attempt: Option<(Offset, i32)>,
    /// Positions retired.
    pub consumed: i64,
}

/// A lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Its id.
    pub id: LeaseId,
    /// Last offset of the span.
    pub end: Offset,
    /// Not expired.
    pub live: bool,
}

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// The group that gave the message up.
    pub group: Group,
    /// The message.
    pub offset: Offset,
    /// Retries it had used.
    pub retries: i32,
    /// Why.
    pub error: String,
    /// Its segment was gone when it was filed.
    pub deleted: bool,
}

impl Cursor {
    /// A cursor that nobody has claimed from.
    pub fn at(committed: Offset) -> Cursor {
        Cursor {
            committed,
            lease: None,
            retries: 0,
            retry_offset: None,
            waiting: false,
            attempt: None,
            consumed: 0,
        }
    }

    /// Whether a live lease holds it.
    pub fn is_held(&self) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.live)
    }

    /// Whether this lease holds it.
    pub fn is_held_by(&self, id: &LeaseId) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.live && lease.id == *id)
    }
}

impl Partition {
    /// Offset of the newest message, -1 without one.
    pub fn log_end(&self) -> Offset {
        self.messages.len() as Offset - 1
    }

    /// The message at an offset, deleted or not.
    pub fn message(&self, at: Offset) -> Option<&Message> {
        usize::try_from(at).ok().and_then(|at| self.messages.get(at))
    }

    /// Offsets whose key is `key`, ascending.
    pub fn occurrences<'a>(&'a self, key: &'a str) -> impl Iterator<Item = Offset> + 'a {
        self.messages.iter().enumerate().filter(move |(_, m)| m.key == key).map(|(at, _)| at as Offset)
    }
}

impl Model {
    /// The partition of an id.
    pub fn by_id(&mut self, id: PartitionId) -> Option<(&Rules, &mut Partition)> {
        self.queues.values_mut().find_map(|queue| {
            let partition = queue.partitions.values_mut().find(|p| p.id == Some(id))?;
            Some((&queue.rules, partition))
        })
    }

    /// Every partition.
    pub fn partitions(&self) -> impl Iterator<Item = &Partition> {
        self.queues.values().flat_map(|queue| queue.partitions.values())
    }

    /// The same, to be changed.
    pub fn partitions_mut(&mut self) -> impl Iterator<Item = &mut Partition> {
        self.queues.values_mut().flat_map(|queue| queue.partitions.values_mut())
    }

    /// How many partitions a lease holds.
    pub fn held_by(&self, lease: &LeaseId) -> usize {
        self.partitions().flat_map(|p| p.cursors.values()).filter(|c| c.is_held_by(lease)).count()
    }

    /// The queues that a target means.
    fn queues_of(&self, target: &PopTarget) -> Vec<QueueName> {
        match target {
            PopTarget::Queue(queue) | PopTarget::Partition(queue, _) => vec![queue.clone()],
            PopTarget::Discovery { namespace, .. } => {
                let matches = |queue: &Queue| namespace.as_ref().is_some_and(|n| *n == queue.namespace);
                self.queues.iter().filter(|(_, q)| matches(q)).map(|(name, _)| name.clone()).collect()
            }
        }
    }
}
