//! Queue listing, detail, depth, deletion, namespaces and tasks.

use queen_types::{PartitionId, QueueId, QueueOptions, Timestamp};

use crate::configure;
use crate::json::{self, Object};

/// Message counts of a queue or partition.
#[derive(Debug, Clone, Copy, Default)]
pub struct CountsLine {
    /// Retained.
    pub total: i64,
    /// Not yet consumed.
    pub pending: i64,
    /// Under a live lease.
    pub processing: i64,
    /// Done.
    pub completed: i64,
    /// Dead letters.
    pub dead_letter: i64,
}

impl CountsLine {
    /// The six counts of the detail; failures are not tracked.
    pub(crate) fn write(self, o: &mut Object<'_>) {
        o.int("total", self.total)
            .int("pending", self.pending)
            .int("processing", self.processing)
            .int("completed", self.completed)
            .raw("failed", "null")
            .int("deadLetter", self.dead_letter);
    }
}

/// What listing and detail tell of a queue.
#[derive(Debug, Clone, Copy)]
pub struct QueueLine<'a> {
    /// Row id.
    pub id: QueueId,
    /// Name.
    pub name: &'a str,
    /// Discovery key.
    pub namespace: &'a str,
    /// Discovery key.
    pub task: &'a str,
    /// Creation time.
    pub created_at: Timestamp,
    /// Number of partitions.
    pub partitions: i64,
    /// Bytes of stored segments.
    pub retained_bytes: i64,
    /// Number of stored segments.
    pub segments: i64,
    /// Counts over all partitions.
    pub counts: CountsLine,
}

impl QueueLine<'_> {
    fn head(&self, o: &mut Object<'_>) {
        o.uuid("id", &self.id.0)
            .str("name", self.name)
            .str("namespace", self.namespace)
            .str("task", self.task)
            .str("createdAt", &self.created_at.millis_text());
    }

    fn segments(&self, o: &mut Object<'_>) {
        o.object("segments", |o| {
            o.int("segments", self.segments).int("messages", self.counts.total);
        });
    }
}

/// Body of the listing. `live` adds the counts of segments.
pub fn queue_list<'a>(queues: impl IntoIterator<Item = QueueLine<'a>>, live: bool) -> Vec<u8> {
    json::object(|o| {
        o.array("queues", queues, |out, queue| {
            let mut o = Object::open(out);
            queue.head(&mut o);
            o.int("partitions", queue.partitions).int("retainedBytes", queue.retained_bytes);
            if live {
                queue.segments(&mut o);
            }
            o.object("messages", |o| {
                o.int("total", queue.counts.total)
                    .int("pending", queue.counts.pending)
                    .int("processing", queue.counts.processing);
            });
            o.close();
        });
    })
}

/// A partition of the detail.
#[derive(Debug, Clone, Copy)]
pub struct DetailPartition<'a> {
    /// Row id.
    pub id: PartitionId,
    /// Name.
    pub name: &'a str,
    /// Creation time.
    pub created_at: Timestamp,
    /// Counts.
    pub counts: CountsLine,
    /// Append time of the oldest retained segment.
    pub oldest: Option<Timestamp>,
    /// Append time of the newest segment.
    pub newest: Option<Timestamp>,
}

/// Body of the detail.
pub fn queue_detail<'a>(
    queue: QueueLine<'_>,
    options: &QueueOptions,
    partitions: impl IntoIterator<Item = DetailPartition<'a>>,
) -> Vec<u8> {
    json::object(|o| {
        queue.head(o);
        o.int("retainedBytes", queue.retained_bytes);
        queue.segments(o);
        o.array("partitions", partitions, |out, p| {
            let mut o = Object::open(out);
            o.uuid("id", &p.id.0).str("name", p.name).str("createdAt", &p.created_at.millis_text());
            o.object("stats", |o| p.counts.write(o));
            o.opt("oldestMessage", p.oldest.map(Timestamp::millis_text).as_deref());
            o.opt("newestMessage", p.newest.map(Timestamp::millis_text).as_deref());
            o.close();
        });
        o.object("totals", |o| queue.counts.write(o));
        o.object("options", |o| {
            o.str("namespace", options.namespace.as_str()).str("task", options.task.as_str());
            configure::echo(o, options);
        });
    })
}

/// Backlog of one partition.
#[derive(Debug, Clone, Copy)]
pub struct DepthLine<'a> {
    /// Its name.
    pub partition: &'a str,
    /// Owed to the group, leased ones included.
    pub pending: i64,
    /// Of these, under a live lease.
    pub processing: i64,
}

impl DepthLine<'_> {
    fn ready(&self) -> i64 {
        (self.pending - self.processing).max(0)
    }
}

/// Body of the depth route.
pub fn depth<'a>(queue: &str, group: Option<&str>, partitions: &[DepthLine<'a>]) -> Vec<u8> {
    let sum = |of: fn(&DepthLine<'a>) -> i64| partitions.iter().map(of).sum::<i64>();
    let pending = sum(|p| p.pending);
    let ready = sum(DepthLine::ready);
    json::object(|o| {
        o.str("queue", queue)
            .opt("group", group)
            .int("pending", pending)
            .int("partitionsPending", sum(|p| i64::from(p.pending > 0)))
            .bool("conflation", false)
            .int("effectivePending", pending)
            .int("processing", sum(|p| p.processing))
            .int("ready", ready)
            .int("partitionsReady", sum(|p| i64::from(p.ready() > 0)))
            .int("effectiveReady", ready)
            .array("partitions", partitions, |out, p| {
                let mut o = Object::open(out);
                o.str("partition", p.partition)
                    .int("pending", p.pending)
                    .int("processing", p.processing)
                    .int("ready", p.ready());
                o.close();
            });
    })
}

/// Body of a queue deletion.
pub fn queue_deleted(queue: &str, existed: bool) -> Vec<u8> {
    json::object(|o| {
        o.bool("deleted", existed).str("queue", queue).bool("existed", existed);
        if !existed {
            o.str("message", "Queue not found, nothing was deleted");
        }
    })
}

/// Which of the two discovery keys is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// `namespaces`.
    Namespace,
    /// `tasks`.
    Task,
}

/// One namespace or task.
#[derive(Debug, Clone, Copy)]
pub struct KeyLine<'a> {
    /// The namespace or task.
    pub key: &'a str,
    /// Its queues.
    pub queues: i64,
    /// Their partitions.
    pub partitions: i64,
    /// Retained messages.
    pub total: i64,
    /// Pending messages.
    pub pending: i64,
}

/// Body of the namespaces and of the tasks route.
pub fn keys<'a>(kind: KeyKind, lines: impl IntoIterator<Item = KeyLine<'a>>) -> Vec<u8> {
    let (list, name) = match kind {
        KeyKind::Namespace => ("namespaces", "namespace"),
        KeyKind::Task => ("tasks", "task"),
    };
    json::object(|o| {
        o.array(list, lines, |out, line| {
            let mut o = Object::open(out);
            o.str(name, line.key).int("queues", line.queues).int("partitions", line.partitions);
            o.object("messages", |o| {
                o.int("total", line.total).int("pending", line.pending);
            });
            o.close();
        });
    })
}
