//! `GET /api/v1/status…`, `GET /api/v1/resources/overview` and `POST /api/v1/stats/refresh`.

use queen_types::{PartitionId, QueueId, QueueOptions, Timestamp};

use crate::analytics::{SystemLine, TimeRange, WorkerBucketLine, WorkerLine};
use crate::body::BodyError;
use crate::json::{self, Object};
use crate::resources::CountsLine;

/// Smallest, average, median and largest of something.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)] // the names say it
pub struct SpreadLine {
    pub avg: i64,
    pub median: i64,
    pub min: i64,
    pub max: i64,
}

impl SpreadLine {
    fn write(self, o: &mut Object<'_>) {
        o.int("avg", self.avg).int("median", self.median).int("min", self.min).int("max", self.max);
    }
}

/// The stored counters of a tenant.
#[derive(Debug, Clone, Copy)]
pub struct OverviewLine {
    /// Queues.
    pub queues: i64,
    /// Partitions.
    pub partitions: i64,
    /// Namespaces.
    pub namespaces: i64,
    /// Tasks.
    pub tasks: i64,
    /// Messages; pending is without what is under a lease.
    pub counts: CountsLine,
    /// Seconds.
    pub time_lag: SpreadLine,
    /// Messages.
    pub offset_lag: SpreadLine,
    /// Appended a second.
    pub ingested: f64,
    /// Consumed a second.
    pub processed: f64,
    /// The database's clock.
    pub now: Timestamp,
    /// Age of the counters; `None`: they were never computed.
    pub age_seconds: Option<i64>,
}

/// A message that is dead is a failed one; nothing else is counted as failed.
fn counts(o: &mut Object<'_>, counts: CountsLine) {
    o.int("total", counts.total)
        .int("pending", counts.pending)
        .int("processing", counts.processing)
        .int("completed", counts.completed)
        .int("failed", counts.dead_letter)
        .int("deadLetter", counts.dead_letter);
}

/// Body of `resources/overview`.
pub fn overview(line: &OverviewLine) -> Vec<u8> {
    json::object(|o| line.write(o))
}

impl OverviewLine {
    pub(crate) fn write(&self, o: &mut Object<'_>) {
        let line = self;
        o.int("queues", line.queues)
            .int("partitions", line.partitions)
            .int("namespaces", line.namespaces)
            .int("tasks", line.tasks)
            .object("messages", |o| counts(o, line.counts))
            .object("lag", |o| {
                o.object("time", |o| line.time_lag.write(o)).object("offset", |o| line.offset_lag.write(o));
            })
            .object("throughput", |o| {
                o.real("ingestedPerSecond", line.ingested).real("processedPerSecond", line.processed);
            })
            .str("timestamp", &line.now.millis_text())
            .int("statsAge", line.age_seconds.unwrap_or(-1));
    }
}

/// What a recomputation wrote.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)] // the names say it
pub struct RefreshedLine {
    pub queues: i64,
    pub partitions: i64,
    pub namespaces: i64,
    pub tasks: i64,
    pub systems: i64,
}

/// Body of `POST /api/v1/stats/refresh`.
pub fn refreshed(line: RefreshedLine, at: Timestamp) -> Vec<u8> {
    json::object(|o| {
        o.str("engine", "segments").int("queuesUpdated", line.queues).int("segPartitions", line.partitions);
        for (key, name, count) in [
            ("namespaces", "namespacesUpdated", line.namespaces),
            ("tasks", "tasksUpdated", line.tasks),
            ("system", "systemUpdated", line.systems),
        ] {
            o.object(key, |o| {
                o.int(name, count);
            });
        }
        o.str("refreshedAt", &at.millis_text());
    })
}

/// The stored counters of a queue.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // the names say it
pub struct StoredQueueLine<'a> {
    pub id: QueueId,
    pub name: &'a str,
    pub namespace: &'a str,
    pub task: &'a str,
    pub created_at: Timestamp,
    pub partitions: i64,
    pub counts: CountsLine,
    pub consumed: i64,
}

impl StoredQueueLine<'_> {
    fn head(&self, o: &mut Object<'_>) {
        o.uuid("id", &self.id.0)
            .str("name", self.name)
            .str("namespace", self.namespace)
            .str("task", self.task);
    }
}

/// Body of `status/queues`.
pub fn status_queues(lines: &[StoredQueueLine<'_>], limit: i64, offset: i64) -> Vec<u8> {
    json::object(|o| {
        o.array("queues", lines, |out, line| {
            let mut o = Object::open(out);
            line.head(&mut o);
            o.str("createdAt", &line.created_at.millis_text()).int("partitions", line.partitions);
            o.object("messages", |o| {
                let c = line.counts;
                o.int("total", c.total)
                    .int("pending", c.pending)
                    .int("processing", c.processing)
                    .int("completed", c.completed)
                    .int("deadLetter", c.dead_letter);
            });
            o.close();
        });
        o.object("pagination", |o| {
            o.int("limit", limit).int("offset", offset);
        });
    })
}

/// Everything that the status document shows.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // the names say it
pub struct StatusDocument<'a> {
    pub range: TimeRange,
    pub age_seconds: Option<i64>,
    pub series: &'a [WorkerBucketLine],
    pub workers: &'a [WorkerLine<'a>],
    pub system: &'a [SystemLine<'a>],
    pub queues: &'a [StoredQueueLine<'a>],
    pub counts: CountsLine,
    pub leases: LeasesLine,
    pub dead_letters: DeadLettersLine<'a>,
}

/// Live leases.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)] // the names say it
pub struct LeasesLine {
    pub active: i64,
    pub partitions: i64,
    pub leased: i64,
    pub acked: i64,
}

/// Dead letters.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)] // the names say it
pub struct DeadLettersLine<'a> {
    pub current: i64,
    pub inside: i64,
    pub partitions: i64,
    pub errors: &'a [(String, i64)],
}

/// Body of `GET /api/v1/status`.
pub fn status_document(d: &StatusDocument<'_>) -> Vec<u8> {
    let sum = |of: fn(&WorkerBucketLine) -> i64| d.series.iter().map(of).sum::<i64>();
    let (pushes, pops, acks) = (sum(|w| w.push_requests), sum(|w| w.pop_requests), sum(|w| w.ack_requests));
    let per =
        |messages: i64, requests: i64| (messages as f64 / requests.max(1) as f64 * 100.0).round() / 100.0;
    json::object(|o| {
        d.range.write(o);
        o.count("pointCount", d.series.len()).int("statsAge", d.age_seconds.unwrap_or(-1));
        o.array("throughput", d.series, |out, w| throughput(out, d, w));
        o.array("queues", d.queues, |out, line| {
            let mut o = Object::open(out);
            line.head(&mut o);
            o.int("partitions", line.partitions).int("totalConsumed", line.consumed);
            o.close();
        });
        o.object("messages", |o| {
            counts(o, d.counts);
            o.object("requests", |o| {
                o.int("push", pushes).int("pop", pops).int("ack", acks);
            });
            o.object("batchEfficiency", |o| {
                o.real("push", per(sum(|w| w.push_messages), pushes))
                    .real("pop", per(sum(|w| w.pop_messages), pops))
                    .real("ack", per(sum(|w| w.ack_messages), acks));
            });
        });
        o.object("leases", |o| {
            o.int("active", d.leases.active)
                .int("partitionsWithLeases", d.leases.partitions)
                .int("totalBatchSize", d.leases.leased)
                .int("totalAcked", d.leases.acked);
        });
        o.object("deadLetterQueue", |o| {
            o.int("totalMessages", d.dead_letters.inside)
                .int("currentMessages", d.dead_letters.current)
                .int("affectedPartitions", d.dead_letters.partitions);
            o.array("topErrors", d.dead_letters.errors, |out, (error, count)| {
                let mut o = Object::open(out);
                o.str("error", error).int("count", *count);
                o.close();
            });
        });
        o.array("workers", d.workers, |out, worker| {
            let mut o = Object::open(out);
            worker.write(&mut o);
            o.int("messagesProcessed", worker.messages);
            o.close();
        });
        o.object("errors", |o| {
            o.int("dbErrors", sum(|w| w.db_errors))
                .int("ackFailed", sum(|w| w.ack_failed))
                .int("dlqMessages", sum(|w| w.dead_letters));
        });
    })
}

fn throughput(out: &mut Vec<u8>, d: &StatusDocument<'_>, w: &WorkerBucketLine) {
    let range = d.range;
    // Over all processes of the bucket.
    let used = |value: &str| -> f64 {
        d.system
            .iter()
            .filter(|line| line.bucket == w.bucket && line.value == value)
            .map(|line| line.avg)
            // An empty sum is a negative zero.
            .fold(0.0, |sum, avg| sum + avg)
    };
    let round = |value: f64| (value * 100.0).round() / 100.0;
    let mut o = Object::open(out);
    o.str("timestamp", &w.bucket.millis_text())
        .int("ingested", w.push_messages)
        .int("processed", w.ack_success)
        .int("popMessages", w.pop_messages)
        .real("ingestedPerSecond", range.per_second(w.push_messages))
        .real("processedPerSecond", range.per_second(w.ack_success))
        .real("popPerSecond", range.per_second(w.pop_messages))
        .int("avgLagMs", w.avg_lag)
        .int("maxLagMs", w.max_lag)
        .int("avgEventLoopLagMs", w.avg_loop)
        .int("maxEventLoopLagMs", w.max_loop)
        .int("minFreeSlots", w.min_free)
        .int("dbErrors", w.db_errors)
        .int("ackFailed", w.ack_failed)
        .int("dlqCount", w.dead_letters)
        .real("queenCpuUserPct", round(used("user_us") / 100.0))
        .real("queenCpuSysPct", round(used("system_us") / 100.0))
        .real("queenRssMb", round(used("rss_bytes") / 1_048_576.0))
        .int("dbPoolActive", w.connections)
        .real("dbPoolIdle", round(used("pool_idle")))
        .real("dbPoolSize", round(used("pool_size")));
    o.close();
}

/// A partition of the status of one queue.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // the names say it
pub struct StatusPartitionLine<'a> {
    pub id: PartitionId,
    pub name: &'a str,
    pub created_at: Timestamp,
    pub counts: CountsLine,
    pub consumed: i64,
    pub oldest: Option<Timestamp>,
    pub newest: Option<Timestamp>,
}

/// A group for which old messages wait; without a name: nobody consumes them.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // the names say it
pub struct PinLine<'a> {
    pub group: Option<&'a str>,
    pub partitions: i64,
    pub oldest: Timestamp,
}

/// Body of `status/queues/:queue`.
pub fn status_queue<'a>(
    queue: &StoredQueueLine<'_>,
    options: &QueueOptions,
    pins: &[PinLine<'_>],
    partitions: impl IntoIterator<Item = StatusPartitionLine<'a>>,
) -> Vec<u8> {
    json::object(|o| {
        o.object("queue", |o| {
            queue.head(o);
            o.int("priority", options.priority.into()).str("createdAt", &queue.created_at.millis_text());
            o.object("config", |o| {
                o.int("leaseTime", options.lease_time.into())
                    .int("retryLimit", options.retry_limit.into())
                    .int("retryDelay", options.retry_delay.into())
                    .int("ttl", options.ttl.into())
                    .int("maxQueueSize", options.max_queue_size.into())
                    .bool("deadLetterQueue", options.dead_letter_queue);
            });
        });
        o.object("totals", |o| {
            o.object("messages", |o| queue.counts.write(o));
        });
        o.array("partitions", partitions, |out, p| {
            let mut o = Object::open(out);
            o.uuid("id", &p.id.0).str("name", p.name).str("createdAt", &p.created_at.millis_text());
            o.object("messages", |o| p.counts.write(o)).object("stats", |o| p.counts.write(o));
            o.object("cursor", |o| {
                o.int("totalConsumed", p.consumed).int("batchesConsumed", 0);
            });
            let text = |at: Option<Timestamp>| at.map(Timestamp::millis_text);
            o.opt("lastActivity", text(p.newest).as_deref())
                .opt("oldestMessage", text(p.oldest).as_deref())
                .opt("newestMessage", text(p.newest).as_deref());
            o.close();
        });
        o.array("pinnedBy", pins, |out, pin| {
            let mut o = Object::open(out);
            o.opt("group", pin.group)
                .int("partitions", pin.partitions)
                .str("oldestMessage", &pin.oldest.millis_text());
            o.close();
        });
    })
}

/// Body of `status/analytics`: messages stored per interval.
pub fn ingest(points: &[(Timestamp, i64)], interval: &str, from: Timestamp, to: Timestamp) -> Vec<u8> {
    json::object(|o| {
        o.array("dataPoints", points, |out, (at, messages)| {
            let mut o = Object::open(out);
            o.str("timestamp", &at.millis_text()).int("messages", *messages);
            o.close();
        });
        o.str("interval", interval).str("from", &from.millis_text()).str("to", &to.millis_text());
    })
}

/// What is known of a background task.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // the names say it
pub struct JobLine<'a> {
    pub task: &'a str,
    pub period_ms: i64,
    pub enabled: bool,
    pub holder: Option<&'a str>,
    pub runs: i64,
    pub next_due_at: Timestamp,
    pub lease_until: Option<Timestamp>,
    pub last_start_at: Option<Timestamp>,
    pub last_end_at: Option<Timestamp>,
    pub last_duration_ms: Option<i64>,
}

/// Body of `status/jobs`.
pub fn jobs<'a>(lines: impl IntoIterator<Item = JobLine<'a>>) -> Vec<u8> {
    let text = |at: Option<Timestamp>| at.map(Timestamp::millis_text);
    json::object(|o| {
        o.array("jobs", lines, |out, job| {
            let mut o = Object::open(out);
            o.str("task", job.task)
                .int("periodMs", job.period_ms)
                .bool("enabled", job.enabled)
                .opt("holder", job.holder)
                .int("runs", job.runs)
                .str("nextDueAt", &job.next_due_at.millis_text())
                .opt("leaseUntil", text(job.lease_until).as_deref())
                .opt("lastStartAt", text(job.last_start_at).as_deref())
                .opt("lastEndAt", text(job.last_end_at).as_deref());
            match job.last_duration_ms {
                Some(ms) => o.int("lastDurationMs", ms),
                None => o.raw("lastDurationMs", "null"),
            };
            o.close();
        });
    })
}

/// Body of the answer to a switch of a background task.
pub fn job_switched(task: &str, enabled: bool) -> Vec<u8> {
    json::object(|o| {
        o.str("task", task).bool("enabled", enabled);
    })
}

/// The arbiter of write transactions.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // the names say it
pub struct AdmissionLine<'a> {
    pub budget: f64,
    pub mode: &'a str,
    pub trains_per_second: f64,
    pub transactions_per_train: f64,
    pub cycle_ms: f64,
    /// Name, transactions in flight, most at once, waiting.
    pub lanes: &'a [(&'a str, usize, usize, usize)],
}

/// Body of `status/admission`.
pub fn admission(line: &AdmissionLine<'_>) -> Vec<u8> {
    json::object(|o| {
        o.real("budget", line.budget)
            .str("mode", line.mode)
            .real("trainsPerSecond", line.trains_per_second)
            .real("txnPerTrain", line.transactions_per_train)
            .real("cycleMs", line.cycle_ms);
        o.array("lanes", line.lanes, |out, (lane, in_flight, cap, waiting)| {
            let mut o = Object::open(out);
            o.str("lane", lane).count("inFlight", *in_flight).count("cap", *cap).count("waiting", *waiting);
            o.close();
        });
    })
}

/// Reads `{"enabled":bool}`.
///
/// # Errors
/// Another shape.
pub fn enabled_of(body: &[u8]) -> Result<bool, BodyError> {
    #[derive(serde::Deserialize)]
    struct Switch {
        enabled: bool,
    }
    crate::body::object::<Switch>(body).map(|switch| switch.enabled)
}
