//! The shapes of status, statistics, analytics, maintenance and spool.

use queen_types::series::{
    DeadLetterSummary, LeaseSummary, ParkedBucket, QueueBucket, RetentionBucket, SystemValue, WorkerBucket,
    WorkerSummary,
};
use queen_types::{PartitionId, QueueId, QueueOptions, Timestamp};
use queen_wire::*;

use super::{PARTITION, at, check, uuid};

const COUNTS: CountsLine =
    CountsLine { total: 512, pending: 17, processing: 4, completed: 489, dead_letter: 2 };

fn range() -> TimeRange {
    TimeRange { from: at("2031-04-05T05:00:00Z"), to: at("2031-04-05T06:00:00Z"), bucket_minutes: 1 }
}

fn bucket() -> Timestamp {
    at("2031-04-05T05:07:00Z")
}

fn overview_line() -> OverviewLine {
    OverviewLine {
        queues: 3,
        partitions: 12,
        namespaces: 1,
        tasks: 2,
        counts: COUNTS,
        time_lag: SpreadLine { avg: 40, median: 30, min: 1, max: 300 },
        offset_lag: SpreadLine { avg: 4, median: 3, min: 1, max: 9 },
        ingested: 1.5,
        processed: 0.25,
        now: at("2031-04-05T06:00:00Z"),
        age_seconds: Some(7),
    }
}

fn queue() -> StoredQueueLine<'static> {
    StoredQueueLine {
        id: QueueId(uuid("c0ffee00-1111-4222-8333-444455556666")),
        name: "billing.invoice",
        namespace: "billing",
        task: "",
        created_at: at("2031-04-05T06:00:00Z"),
        partitions: 12,
        counts: COUNTS,
        consumed: 495,
    }
}

fn worker_bucket() -> WorkerBucket {
    WorkerBucket {
        bucket: bucket(),
        avg_loop: 1,
        max_loop: 2,
        avg_free: 7,
        min_free: 5,
        connections: 3,
        avg_queue: 1,
        max_queue: 4,
        jobs: 60,
        push_requests: 10,
        pop_requests: 20,
        ack_requests: 8,
        push_messages: 90,
        pop_messages: 60,
        ack_messages: 62,
        ack_success: 60,
        ack_failed: 2,
        lag_count: 60,
        avg_lag: 15,
        max_lag: 40,
        db_errors: 1,
        dead_letters: 2,
    }
}

fn worker() -> WorkerSummary {
    WorkerSummary {
        server: "queen-0".to_owned(),
        worker: 0,
        avg_loop: 1,
        max_loop: 2,
        free_slots: 7,
        connections: 3,
        queue_size: 0,
        messages: 212,
        last_seen: Timestamp(1_933_304_460_000_000),
    }
}

fn system_lines() -> [SystemValue; 2] {
    let line = |kind: &str, value: &str, avg: f64| SystemValue {
        server: "queen-0".to_owned(),
        port: 6632,
        worker: String::new(),
        bucket: bucket(),
        kind: kind.to_owned(),
        value: value.to_owned(),
        samples: 60,
        avg,
        min: avg - 10.0,
        max: avg + 10.0,
        last: avg + 1.0,
    };
    [line("cpu", "user_us", 150.0), line("memory", "rss_bytes", 52_428_800.0)]
}

fn queue_bucket() -> QueueBucket {
    QueueBucket {
        bucket: bucket(),
        queue: "billing.invoice".to_owned(),
        pop_messages: 60,
        lag_count: 60,
        avg_lag: 15,
        max_lag: 40,
        push_requests: 10,
        push_messages: 90,
        pop_empty: 5,
        ack_requests: 8,
        ack_success: 60,
        ack_failed: 2,
        transactions: 1,
        created: 3,
        deleted: 1,
        partitions: 12,
        parked: 2,
    }
}

#[test]
fn counters() {
    check("overview", overview(&overview_line()));
    check("overview.never", overview(&OverviewLine { age_seconds: None, ..overview_line() }));
    let line = RefreshedLine { queues: 3, partitions: 12, namespaces: 1, tasks: 2, systems: 2 };
    check("refreshed", refreshed(line, at("2031-04-05T06:00:00Z")));
    check("status.queues", status_queues(&[queue()], 100, 0));
    let partition = StatusPartitionLine {
        id: PartitionId(uuid(PARTITION)),
        name: "cust-7",
        created_at: at("2031-04-05T06:01:00Z"),
        counts: COUNTS,
        consumed: 489,
        oldest: Some(at("2031-04-05T06:07:08.123456Z")),
        newest: None,
    };
    let pin = |group| PinLine { group, partitions: 2, oldest: at("2031-04-05T05:00:00Z") };
    let pins = [pin(Some("audit")), pin(None)];
    check("status.queue", status_queue(&queue(), &QueueOptions::default(), &pins, [partition]));
}

#[test]
fn the_status_document() {
    let errors = vec![("no such customer".to_owned(), 2)];
    let system = system_lines();
    let document = StatusDocument {
        range: range(),
        age_seconds: Some(7),
        series: &[worker_bucket()],
        workers: &[worker()],
        system: &system,
        queues: &[queue()],
        counts: COUNTS,
        leases: LeaseSummary { active: 1, partitions: 1, leased: 4, acked: 1 },
        dead_letters: &DeadLetterSummary { current: 2, inside: 1, partitions: 1, errors },
    };
    check("status", status_document(&document));
    let empty = StatusDocument {
        age_seconds: None,
        series: &[],
        workers: &[],
        system: &[],
        queues: &[],
        counts: CountsLine::default(),
        leases: LeaseSummary::default(),
        dead_letters: &DeadLetterSummary::default(),
        ..document
    };
    check("status.empty", status_document(&empty));
}

#[test]
fn the_summary_and_the_configuration() {
    let warnings = ["a \"b\"".to_owned()];
    let line = SummaryLine {
        server: "queen-0",
        version: "1.3.0",
        now: at("2031-04-05T06:00:01Z"),
        connected: true,
        schema_applied: true,
        draining: false,
        push_maintenance: true,
        pop_maintenance: false,
        spool: BufferLine {
            pending: 5,
            pending_files: 1,
            bytes: 4_096,
            writable: true,
            ..BufferLine::default()
        },
        parked: 2,
        stats: Some(overview_line()),
        rates: &[(bucket(), [1.5, 1.0, 0.0])],
        warnings: &warnings,
    };
    check("summary", summary(&line));
    let away = SummaryLine { connected: false, stats: None, rates: &[], warnings: &[], ..line };
    check("summary.away", summary(&away));
    let settings = "[\n{\"name\":\"PORT\",\"key\":\"server.port\",\"value\":6632,\"source\":\"default\"}]\n";
    assert_eq!(
        String::from_utf8(config("1.3.0", settings, &warnings)).unwrap(),
        format!("{{\"version\":\"1.3.0\",\"settings\":{},\"warnings\":[\"a \\\"b\\\"\"]}}", settings.trim())
    );
}

#[test]
fn tasks_and_admission() {
    let job = JobLine {
        task: "retention",
        period_ms: 5_000,
        enabled: true,
        holder: Some("queen-0"),
        runs: 12,
        next_due_at: at("2031-04-05T06:00:05Z"),
        lease_until: Some(at("2031-04-05T06:01:00Z")),
        last_start_at: Some(at("2031-04-05T06:00:00Z")),
        last_end_at: Some(at("2031-04-05T06:00:00.25Z")),
        last_duration_ms: Some(250),
    };
    let never = JobLine {
        task: "stats_refresh",
        enabled: false,
        holder: None,
        runs: 0,
        lease_until: None,
        last_start_at: None,
        last_end_at: None,
        last_duration_ms: None,
        ..job
    };
    check("jobs", jobs([job, never]));
    check("job.switched", job_switched("retention", false));
    let lanes = [("push", 1, 4, 0), ("maint", 0, 2, 3)];
    let line = AdmissionLine {
        budget: 8.0,
        mode: "steady",
        trains_per_second: 120.5,
        transactions_per_train: 2.25,
        cycle_ms: 6.5,
        lanes: &lanes,
    };
    check("admission", admission(&line));
    check("mesh", no_mesh("no_peers", false, true));
}

#[test]
fn series() {
    let from = at("2031-04-05T05:00:00Z");
    check("ingest", ingest(&[(bucket(), 90)], "hour", from, at("2031-04-05T06:00:00Z")));
    let nothing = QueueBucket { pop_messages: 0, ..queue_bucket() };
    let unknown = QueueBucket { lag_count: 0, queue: "b".to_owned(), ..queue_bucket() };
    check("queue_lag", queue_lag(range(), &[queue_bucket(), nothing, unknown.clone()]));
    check("queue_ops", queue_ops(range(), &[queue_bucket(), unknown]));
    let parked = ParkedBucket {
        bucket: bucket(),
        queue: "billing.invoice".to_owned(),
        server: "queen-0".to_owned(),
        worker: 0,
        parked: 2,
    };
    check("parked", parked_replicas(range(), &[parked]));
    let deleted = RetentionBucket { bucket: bucket(), age: 5, completed: 3, evicted: 1, events: 2 };
    check("retention", retention(range(), &[deleted]));
    check("system_metrics", system_metrics(range(), &system_lines()));
    check("worker_metrics", worker_metrics(range(), &[worker_bucket()], &[worker()], &[queue_bucket()], 17));
}

#[test]
fn modes_and_the_spool() {
    let line = BufferLine {
        pending: 5,
        pending_files: 2,
        failed: 1,
        db_healthy: false,
        ready_files: 1,
        ready_bytes: 1_024,
        bytes: 4_096,
        quarantined: 3,
        writable: true,
    };
    check("buffers", buffers(&line));
    check("maintenance", maintenance(true, false, false, &line));
    check("maintenance.set", maintenance_set(true, &line, false, Some(true)));
    check("maintenance.set_at_once", maintenance_set(false, &line, true, None));
    check("maintenance.pop", pop_maintenance(true));
    check("maintenance.pop_set", pop_maintenance_set(false, true));
    check("spool.requeued", counted("requeued", 3));
    check("spool.drained", drained(5, 0, 3));
}
