//! `GET /api/v1/analytics/…`: series over buckets of time.

use queen_types::Timestamp;

use crate::json::{self, Object};

/// The span that a series covers.
#[derive(Debug, Clone, Copy)]
pub struct TimeRange {
    /// From.
    pub from: Timestamp,
    /// To.
    pub to: Timestamp,
    /// Length of a bucket.
    pub bucket_minutes: i64,
}

impl TimeRange {
    pub(crate) fn write(&self, o: &mut Object<'_>) {
        o.object("timeRange", |o| {
            o.str("from", &self.from.millis_text()).str("to", &self.to.millis_text());
        });
        o.int("bucketMinutes", self.bucket_minutes);
    }

    /// How many of something there were a second.
    pub(crate) fn per_second(&self, count: i64) -> f64 {
        (count as f64 / (self.bucket_minutes.max(1) * 60) as f64 * 100.0).round() / 100.0
    }
}

/// What was counted of a queue in a bucket. Lags are milliseconds.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // the names say it
pub struct QueueBucketLine<'a> {
    pub bucket: Timestamp,
    pub queue: &'a str,
    pub pop_messages: i64,
    pub lag_count: i64,
    pub avg_lag: i64,
    pub max_lag: i64,
    pub push_requests: i64,
    pub push_messages: i64,
    pub pop_empty: i64,
    pub ack_requests: i64,
    pub ack_success: i64,
    pub ack_failed: i64,
    pub transactions: i64,
    pub created: i64,
    pub deleted: i64,
    pub partitions: i64,
    pub parked: i64,
}

/// Body of `analytics/queue-lag`: buckets in which something was delivered.
pub fn queue_lag(range: TimeRange, lines: &[QueueBucketLine<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    json::array(&mut out, lines.iter().filter(|line| line.pop_messages > 0), |out, line| {
        let mut o = Object::open(out);
        o.str("queueName", line.queue).int("popCount", line.pop_messages);
        if line.lag_count > 0 {
            o.int("avgLagMs", line.avg_lag).int("maxLagMs", line.max_lag);
        } else {
            o.raw("avgLagMs", "null").raw("maxLagMs", "null");
        }
        o.int("bucketMinutes", range.bucket_minutes).str("bucketTime", &seconds(line.bucket));
        o.close();
    });
    out
}

/// A stamp with whole seconds.
fn seconds(at: Timestamp) -> String {
    let text = at.millis_text();
    match text.split_once('.') {
        Some((head, _)) => format!("{head}Z"),
        None => text,
    }
}

/// Body of `analytics/queue-ops`.
pub fn queue_ops(range: TimeRange, lines: &[QueueBucketLine<'_>]) -> Vec<u8> {
    let mut names: Vec<&str> = lines.iter().map(|line| line.queue).collect();
    names.sort_unstable();
    names.dedup();
    json::object(|o| {
        range.write(o);
        o.array("series", lines, |out, line| {
            let mut o = Object::open(out);
            o.str("bucket", &line.bucket.millis_text())
                .str("queueName", line.queue)
                .int("pushRequests", line.push_requests)
                .int("pushMessages", line.push_messages)
                .int("popMessages", line.pop_messages)
                .int("popEmpty", line.pop_empty)
                .int("ackRequests", line.ack_requests)
                .int("ackSuccess", line.ack_success)
                .int("ackFailed", line.ack_failed)
                .int("transactions", line.transactions)
                .int("partitionsCreated", line.created)
                .int("partitionsDeleted", line.deleted)
                .int("partitionCount", line.partitions)
                .int("avgLagMs", line.avg_lag)
                .int("maxLagMs", line.max_lag)
                .real("pushPerSecond", range.per_second(line.push_messages))
                .real("popPerSecond", range.per_second(line.pop_messages))
                .real("ackPerSecond", range.per_second(line.ack_success))
                .real("emptyPerSecond", range.per_second(line.pop_empty))
                .int("parkedCount", line.parked);
            o.close();
        });
        o.array("queues", names, json::string);
    })
}

/// Parked pops of a queue at a broker in a bucket.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // the names say it
pub struct ParkedLine<'a> {
    pub bucket: Timestamp,
    pub queue: &'a str,
    pub server: &'a str,
    pub worker: i32,
    pub parked: i64,
}

/// Body of `analytics/queue-parked-replicas`.
pub fn parked_replicas(range: TimeRange, lines: &[ParkedLine<'_>]) -> Vec<u8> {
    let mut replicas: Vec<(&str, i32)> = lines.iter().map(|line| (line.server, line.worker)).collect();
    replicas.sort_unstable();
    replicas.dedup();
    json::object(|o| {
        range.write(o);
        o.array("series", lines, |out, line| {
            let mut o = Object::open(out);
            o.str("bucket", &line.bucket.millis_text())
                .str("queueName", line.queue)
                .str("hostname", line.server)
                .int("workerId", line.worker.into())
                .int("parkedCount", line.parked);
            o.close();
        });
        o.array("replicas", replicas, |out, (server, worker)| {
            let mut o = Object::open(out);
            o.str("hostname", server).int("workerId", worker.into());
            o.close();
        });
    })
}

/// Messages that retention deleted in a bucket.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)] // the names say it
pub struct RetentionLine {
    pub bucket: Option<Timestamp>,
    pub age: i64,
    pub completed: i64,
    pub evicted: i64,
    pub events: i64,
}

impl RetentionLine {
    fn write(&self, o: &mut Object<'_>) {
        o.int("retentionMsgs", self.age)
            .int("completedRetentionMsgs", self.completed)
            .int("evictionMsgs", self.evicted)
            .int("totalMsgs", self.age + self.completed + self.evicted)
            .int("eventCount", self.events);
    }
}

/// Body of `analytics/retention`.
pub fn retention(range: TimeRange, lines: &[RetentionLine]) -> Vec<u8> {
    let mut totals = RetentionLine::default();
    for line in lines {
        totals.age += line.age;
        totals.completed += line.completed;
        totals.evicted += line.evicted;
        totals.events += line.events;
    }
    json::object(|o| {
        range.write(o);
        o.array("series", lines, |out, line| {
            let mut o = Object::open(out);
            o.opt("bucket", line.bucket.map(Timestamp::millis_text).as_deref());
            line.write(&mut o);
            o.close();
        });
        o.object("totals", |o| totals.write(o));
    })
}

/// What all brokers counted in a bucket. Times are milliseconds.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // the names say it
pub struct WorkerBucketLine {
    pub bucket: Timestamp,
    pub avg_loop: i64,
    pub max_loop: i64,
    pub avg_free: i64,
    pub min_free: i64,
    pub connections: i64,
    pub avg_queue: i64,
    pub max_queue: i64,
    pub jobs: i64,
    pub push_requests: i64,
    pub pop_requests: i64,
    pub ack_requests: i64,
    pub push_messages: i64,
    pub pop_messages: i64,
    pub ack_messages: i64,
    pub ack_success: i64,
    pub ack_failed: i64,
    pub lag_count: i64,
    pub avg_lag: i64,
    pub max_lag: i64,
    pub db_errors: i64,
    pub dead_letters: i64,
}

/// One broker over a span. Times are milliseconds.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // the names say it
pub struct WorkerLine<'a> {
    pub server: &'a str,
    pub worker: i32,
    pub avg_loop: i64,
    pub max_loop: i64,
    pub free_slots: i64,
    pub connections: i64,
    pub queue_size: i64,
    pub messages: i64,
    pub last_seen: Timestamp,
}

impl WorkerLine<'_> {
    pub(crate) fn write(&self, o: &mut Object<'_>) {
        o.str("hostname", self.server)
            .int("workerId", self.worker.into())
            .int("avgEventLoopLagMs", self.avg_loop)
            .int("maxEventLoopLagMs", self.max_loop)
            .int("freeSlots", self.free_slots)
            .int("dbConnections", self.connections)
            .int("jobQueueSize", self.queue_size);
    }
}

/// Body of `analytics/worker-metrics`. `pending`: of the caller's queues.
pub fn worker_metrics(
    range: TimeRange,
    series: &[WorkerBucketLine],
    workers: &[WorkerLine<'_>],
    queues: &[QueueBucketLine<'_>],
    pending: i64,
) -> Vec<u8> {
    let sum = |of: fn(&WorkerBucketLine) -> i64| series.iter().map(of).sum::<i64>();
    json::object(|o| {
        range.write(o);
        o.count("pointCount", series.len());
        o.array("timeSeries", series, |out, w| {
            let mut o = Object::open(out);
            o.str("timestamp", &w.bucket.millis_text())
                .int("pushMessages", w.push_messages)
                .int("popMessages", w.pop_messages)
                .int("ackMessages", w.ack_messages)
                .int("pushRequests", w.push_requests)
                .int("popRequests", w.pop_requests)
                .int("ackRequests", w.ack_requests)
                .int("jobsDone", w.jobs)
                .real("pushPerSecond", range.per_second(w.push_messages))
                .real("popPerSecond", range.per_second(w.pop_messages))
                .real("ackPerSecond", range.per_second(w.ack_messages))
                .int("avgEventLoopLagMs", w.avg_loop)
                .int("maxEventLoopLagMs", w.max_loop)
                .int("avgFreeSlots", w.avg_free)
                .int("minFreeSlots", w.min_free)
                .int("dbConnections", w.connections)
                .int("avgJobQueueSize", w.avg_queue)
                .int("maxJobQueueSize", w.max_queue)
                .int("backoffSize", 0)
                .int("avgLagMs", w.avg_lag)
                .int("maxLagMs", w.max_lag)
                .int("lagCount", w.lag_count)
                .int("dbErrors", w.db_errors)
                .int("ackSuccess", w.ack_success)
                .int("ackFailed", w.ack_failed)
                .int("dlqCount", w.dead_letters);
            o.close();
        });
        o.array("workers", workers, |out, worker| {
            let mut o = Object::open(out);
            worker.write(&mut o);
            o.int("backoffSize", 0)
                .int("messagesProcessed", worker.messages)
                .str("lastSeen", &worker.last_seen.millis_text());
            o.close();
        });
        o.array("queues", totals_of(queues), |out, (name, pops, avg, max)| {
            let mut o = Object::open(out);
            o.str("queueName", name).int("popCount", pops).int("avgLagMs", avg).int("maxLagMs", max);
            o.close();
        });
        o.object("summary", |o| {
            o.int("totalPushMessages", sum(|w| w.push_messages))
                .int("totalPopMessages", sum(|w| w.pop_messages))
                .int("totalAckMessages", sum(|w| w.ack_messages))
                .int("totalPushRequests", sum(|w| w.push_requests))
                .int("totalPopRequests", sum(|w| w.pop_requests))
                .int("totalAckRequests", sum(|w| w.ack_requests))
                .int("totalAckFailed", sum(|w| w.ack_failed))
                .int("totalDbErrors", sum(|w| w.db_errors))
                .int("totalDlq", sum(|w| w.dead_letters))
                .int("pendingMessages", pending);
        });
    })
}

/// Name, deliveries, average and largest lag of each queue over the whole span.
fn totals_of<'a>(lines: &[QueueBucketLine<'a>]) -> Vec<(&'a str, i64, i64, i64)> {
    let mut by_queue: std::collections::BTreeMap<&str, (i64, i64, i64, i64)> = Default::default();
    for line in lines {
        let total = by_queue.entry(line.queue).or_default();
        total.0 += line.pop_messages;
        total.1 += line.lag_count;
        total.2 += line.avg_lag * line.lag_count;
        total.3 = total.3.max(line.max_lag);
    }
    by_queue.into_iter().map(|(name, (pops, n, sum, max))| (name, pops, sum / n.max(1), max)).collect()
}

/// One value of a process in a bucket.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // the names say it
pub struct SystemLine<'a> {
    pub server: &'a str,
    pub port: i32,
    pub worker: &'a str,
    pub bucket: Timestamp,
    pub kind: &'a str,
    pub value: &'a str,
    pub samples: i64,
    pub avg: f64,
    pub min: f64,
    pub max: f64,
    pub last: f64,
}

/// Body of `analytics/system-metrics`; values of one process, of one bucket and of one kind stand together.
pub fn system_metrics(range: TimeRange, lines: &[SystemLine<'_>]) -> Vec<u8> {
    let replicas: Vec<&[SystemLine<'_>]> =
        lines.chunk_by(|a, b| (a.server, a.port, a.worker) == (b.server, b.port, b.worker)).collect();
    let points = |of: &[SystemLine<'_>]| of.chunk_by(|a, b| a.bucket == b.bucket).count();
    json::object(|o| {
        range.write(o);
        o.count("pointCount", replicas.iter().map(|of| points(of)).max().unwrap_or(0));
        o.count("replicaCount", replicas.len());
        o.array("replicas", replicas, |out, of| {
            let Some(first) = of.first() else { return };
            let mut o = Object::open(out);
            o.str("hostname", first.server).int("port", first.port.into()).str("workerId", first.worker);
            o.array("timeSeries", of.chunk_by(|a, b| a.bucket == b.bucket), point);
            o.close();
        });
    })
}

fn point(out: &mut Vec<u8>, lines: &[SystemLine<'_>]) {
    let Some(first) = lines.first() else { return };
    let mut o = Object::open(out);
    o.str("timestamp", &first.bucket.millis_text()).int("sampleCount", first.samples);
    o.object("metrics", |o| {
        for kind in lines.chunk_by(|a, b| a.kind == b.kind) {
            let Some(first) = kind.first() else { continue };
            let mut values = Object::open(o.text_key(first.kind));
            for line in kind {
                let mut value = Object::open(values.text_key(line.value));
                value
                    .real("avg", line.avg)
                    .real("min", line.min)
                    .real("max", line.max)
                    .real("last", line.last);
                value.close();
            }
            values.close();
        }
    });
    o.close();
}
