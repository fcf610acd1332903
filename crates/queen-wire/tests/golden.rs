//! Requests and answers against the files of `golden/`: change a key there first, then in the code. A golden file may
//! be wrapped; line breaks and indentation are no part of it.
#![allow(clippy::unwrap_used)]

use queen_types::{
    AckStatus, MessageId, PartitionId, PushStatus, QueueId, QueueName, QueueOptions, Timestamp, Uuid,
};
use queen_wire::*;

#[path = "golden/status.rs"]
mod status_shapes;

fn file(name: &str) -> String {
    let path = format!("{}/tests/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn check(name: &str, answer: Vec<u8>) {
    let wanted: String = file(name).lines().map(str::trim).collect();
    assert_eq!(String::from_utf8(answer).unwrap(), wanted, "{name}");
}

fn uuid(text: &str) -> Uuid {
    Uuid::try_parse(text).unwrap()
}

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

const LEASE: &str = "01b3c0de-1f00-7a00-8a00-77aa00bb11cc";
const PARTITION: &str = "5f0c1f7e-6d0b-4b8e-9f0a-0c2b7d1e4a10";
const MESSAGE: &str = "01b3c0de-0a11-7c00-9a00-5f00aa11bb22";

#[test]
fn push() {
    let body = file("push.request");
    let request = PushRequest::parse(body.as_bytes()).unwrap();
    assert_eq!(request.items.len(), 2);
    assert!(request.items.iter().all(|i| i.queue.as_str() == "billing.invoice"
        && i.partition.as_str() == "cust-7"
        && i.transaction_id.as_ref().unwrap().as_str() == "inv-901"
        && i.payload == r#"{"cents":1250}"#));

    let line = |status| PushLine {
        message_id: MessageId(uuid(MESSAGE)),
        transaction_id: "inv-901",
        queue: "billing.invoice",
        status,
        error: None,
    };
    let failed = PushLine {
        message_id: MessageId(uuid("01b3c0de-0a12-7c00-9a00-5f00aa11bb22")),
        transaction_id: "a\"\\\u{1}é",
        queue: "q",
        status: PushStatus::Failed,
        error: Some("no database"),
    };
    let lines = [line(PushStatus::Queued), line(PushStatus::Duplicate), failed];
    check("push.answer", push_answer(lines.into_iter()));
    assert_eq!(push_answer([].into_iter()), b"[]");
}

#[test]
fn pop() {
    let first = PartitionLine { id: PartitionId(uuid(PARTITION)), name: "cust-7", delivery_attempt: 1 };
    let second = PartitionLine {
        id: PartitionId(uuid("5f0c1f7e-6d0b-4b8e-9f0a-0c2b7d1e4a11")),
        name: "cust-8",
        delivery_attempt: 3,
    };
    let mut writer = PopWriter::open("billing.invoice", "mailer", LEASE, first, 2, (2, 16));
    writer.partition(first);
    writer.message(MessageLine {
        id: MessageId(uuid(MESSAGE)),
        transaction_id: "inv-901",
        trace_id: None,
        payload: br#"{"cents":1250}"#,
        producer_sub: None,
        created_at: at("2031-04-05T06:07:08.123456Z"),
    });
    writer.partition(second);
    writer.message(MessageLine {
        id: MessageId(uuid("01b3c0de-0a12-7c00-9a00-5f00aa11bb22")),
        transaction_id: "inv-902",
        trace_id: Some(uuid("01b3c0de-0000-4000-8000-000000000001")),
        payload: b"",
        producer_sub: Some("svc"),
        created_at: at("2031-04-05T06:07:08.123457Z"),
    });
    check("pop.answer", writer.finish());
    check("pop.refusal", pop_refusal("namespace or task is required"));
}

#[test]
fn ack() {
    let body = file("ack.request");
    let request = AckRequest::parse_single(body.as_bytes()).unwrap();
    assert_eq!(request.group.as_str(), "mailer");
    let [one] = &request.acks[..] else { panic!("one ack") };
    assert_eq!(one.transaction_id, "inv-901");
    assert_eq!(one.partition, Some(Ok(PartitionId(uuid(PARTITION)))));
    assert_eq!(one.lease.as_ref().unwrap().as_str(), LEASE);
    assert_eq!(one.status, AckStatus::Completed);

    let body = file("ack_batch.request");
    let request = AckRequest::parse_batch(body.as_bytes()).unwrap();
    assert_eq!(request.acks.len(), 2);
    assert_eq!(request.acks[1].status, AckStatus::Dlq);
    assert_eq!(request.acks[1].error.as_deref(), Some("no such customer"));

    let line = |transaction_id| AckLine {
        transaction_id,
        success: true,
        lease_released: true,
        ..AckLine::default()
    };
    check("ack.answer", ack_answer([line("inv-901")].into_iter()));
    let lines = [
        line("inv-902"),
        AckLine { dlq: true, ..line("inv-903") },
        AckLine { redelivers: true, ..line("inv-904") },
        AckLine { dropped: true, ..line("inv-905") },
        AckLine { transaction_id: "inv-906", error: Some("invalid or expired lease"), ..AckLine::default() },
    ];
    check("ack_batch.answer", ack_answer(lines.into_iter()));
}

#[test]
fn transaction() {
    let body = file("transaction.request");
    let request = TransactionRequest::parse(body.as_bytes()).unwrap();
    assert_eq!(request.required_leases[0].as_str(), LEASE);
    let [TxnOperation::Ack { transaction_id, .. }, TxnOperation::Push { payload, .. }] =
        &request.operations[..]
    else {
        panic!("an ack and a push")
    };
    assert_eq!(transaction_id, "inv-901");
    assert_eq!(*payload, Some(r#"{"to":"a@example.org"}"#));

    let id = uuid("01b3c0de-2a00-7000-8000-00aa11bb22cc");
    let message_id = MessageId(uuid("01b3c0de-2a01-7000-8000-00aa11bb22cc"));
    let push =
        |duplicate| TxnLine::Push { transaction_id: "mail-901", message_id, queue: "mail.out", duplicate };
    let ack = TxnLine::Ack { transaction_id: "inv-901", dlq: false };
    check("transaction.committed", transaction_committed(&id, [ack, push(false), push(true)]));
    let refused = transaction_refused(&id, "duplicate", "stored before", &[(1, message_id)]);
    check("transaction.duplicate", refused);
}

#[test]
fn lease() {
    let expiry = at("2031-04-05T06:09:08Z");
    check("lease.answer", lease_extended(LEASE, 1, Some(expiry)));
    check("lease.unknown", lease_extended(LEASE, 0, None));
}

#[test]
fn configure() {
    let request = ConfigureRequest::parse(file("configure.request").as_bytes()).unwrap();
    let mut options = QueueOptions::default();
    request.edit.apply(&mut options);
    let id = QueueId(uuid("c0ffee00-1111-4222-8333-444455556666"));
    check("configure.answer", configured(&QueueName::new("billing.invoice").unwrap(), id, &options));
}

fn queue_line(counts: CountsLine, segments: i64) -> QueueLine<'static> {
    QueueLine {
        id: QueueId(uuid("c0ffee00-1111-4222-8333-444455556666")),
        name: "billing.invoice",
        namespace: "billing",
        task: "",
        created_at: at("2031-04-05T06:00:00Z"),
        partitions: 12,
        retained_bytes: 40_960,
        segments,
        counts,
    }
}

#[test]
fn resources() {
    let counts = CountsLine { total: 512, pending: 17, processing: 4, completed: 491, dead_letter: 0 };
    check("queues.answer", queue_list([queue_line(counts, 30)], true));
    check("queues.cached", queue_list([queue_line(counts, 30)], false));

    let counts = CountsLine { total: 3, pending: 2, processing: 0, completed: 1, dead_letter: 0 };
    let partition = DetailPartition {
        id: PartitionId(uuid(PARTITION)),
        name: "cust-7",
        created_at: at("2031-04-05T06:01:00Z"),
        counts,
        oldest: Some(at("2031-04-05T06:07:08.123456Z")),
        newest: None,
    };
    let options = QueueOptions {
        namespace: queen_types::Namespace::new("billing").unwrap(),
        ..QueueOptions::default()
    };
    check("queue.answer", queue_detail(queue_line(counts, 1), &options, [partition]));

    let line = |partition, pending, processing| DepthLine { partition, pending, processing };
    let lines = [line("cust-7", 12, 0), line("cust-8", 0, 0), line("cust-9", 5, 5)];
    check("depth.answer", depth("billing.invoice", Some("mailer"), &lines));

    check("deleted", queue_deleted("billing.invoice", true));
    check("deleted.nothing", queue_deleted("billing.invoice", false));

    let key = KeyLine { key: "billing", queues: 2, partitions: 14, total: 512, pending: 17 };
    check("namespaces", keys(KeyKind::Namespace, [key]));
    let key = KeyLine { key: "invoice", queues: 1, partitions: 12, total: 512, pending: 17 };
    check("tasks", keys(KeyKind::Task, [key]));
}

#[test]
fn dlq() {
    let line = DlqLine {
        id: uuid("9a9a0000-0000-4000-8000-000000000001"),
        transaction_id: "inv-903",
        partition_id: PartitionId(uuid(PARTITION)),
        queue: "billing.invoice",
        partition: "cust-7",
        group: "mailer",
        error: Some("no such customer"),
        retry_count: 0,
        payload: br#"{"cents":5}"#,
        producer_sub: None,
        created_at: Some(at("2031-04-05T06:07:09Z")),
        failed_at: at("2031-04-05T06:09:00Z"),
    };
    check("dlq", dlq_page([line], 1, 0, 7));
}

#[test]
fn system() {
    check("health", health(false, false, "1.3.0"));
    let readiness = Readiness {
        ready: true,
        database_connected: true,
        schema_applied: true,
        spool_writable: false,
        maintenance: false,
        draining: false,
    };
    check("readyz", readyz(readiness));
    check("metrics", metrics_zero());
    check("error", error_with_code("Not Found", "no_such_route"));
    assert_eq!(livez(true), br#"{"alive":true}"#);
    assert_eq!(status(), br#"{"status":"ok","engine":"segments-rust"}"#);
    assert_eq!(error_body("pool"), br#"{"error":"pool"}"#);
}

fn group_named(text: &str) -> queen_types::Group {
    queen_types::Group::new(text).unwrap()
}

#[test]
fn groups() {
    let line = GroupLine {
        group: "mailer",
        queue: "billing.invoice",
        members: 12,
        lagging: 2,
        pending: 17,
        age_seconds: 4,
        consumed: true,
        mode: Some("all"),
        from: Some(Timestamp::EPOCH),
        subscribed_at: Some(at("2031-04-05T06:02:00.5Z")),
        conflation: false,
    };
    let late = GroupLine { age_seconds: 301, mode: None, from: None, subscribed_at: None, ..line };
    let dead = GroupLine { consumed: false, group: "a\"b", ..line };
    check("groups", group_list([line, late, dead]));

    let cursor = CursorLine {
        group: "audit",
        queue: "billing.invoice",
        partition: "cust-9",
        partition_id: PartitionId(uuid(PARTITION)),
        worker: Some(LEASE),
        leased: false,
        consumed: 40,
        pending: 5,
        oldest_at: Some(at("2031-04-05T04:05:00Z")),
        age_seconds: 7300,
    };
    let held = CursorLine { queue: "q\"", leased: true, ..cursor };
    check("lagging", lagging([cursor, held]));
    check("group", group_detail(&[cursor, cursor, held]));
    check("group.unknown", group_detail(&[]));
    check("group.deleted", group_deleted(&group_named("audit"), Some("billing.invoice"), 12, true));
    check("group.deleted_everywhere", group_deleted(&group_named("audit"), None, 0, false));
    check("subscription", subscription_changed(&group_named("mailer"), "2031-04-01T00:00:00Z", 2));
}

#[test]
fn seeks() {
    let group = group_named("mailer");
    let whole = SeekLine {
        group: &group,
        queue: "billing.invoice",
        partition: None,
        to: SeekTarget::At(at("2031-04-05T06:00:00Z")),
    };
    let one = SeekLine { partition: Some("cust-7"), to: SeekTarget::End, ..whole };
    check("seek", sought(whole, 12));
    check("seek.partition", sought(one, 1));
    check("seek.offset", sought(SeekLine { to: SeekTarget::Offset(41), ..whole }, 12));
    check("seek.refused", seek_refused(whole));
    check("seek.partition_refused", seek_refused(one));
}

#[test]
fn messages_and_replays() {
    let core = MessageCore {
        id: Some(MessageId(uuid(MESSAGE))),
        transaction_id: "inv-901",
        partition_id: PartitionId(uuid(PARTITION)),
        partition: "cust-7",
        queue: "billing.invoice",
        namespace: "billing",
        task: "",
        status: queen_types::MessageStatus::Completed,
        trace_id: None,
        producer_sub: None,
        created_at: at("2031-04-05T06:07:08.123Z"),
        leased_until: None,
        payload: br#"{"cents":1250}"#,
        encrypted: false,
    };
    let line = BrowseLine {
        core,
        hash: "5d41402abc4b2a76b9719d911017c592",
        queue_status: queen_types::MessageStatus::Pending,
        consumed_by: 1,
        groups: 1,
        priority: 0,
        segment: 40,
        frame: 0,
    };
    check("messages", messages(&[line], ModeLine { queue_mode: false, groups: 1 }));
    let groups = [MessageGroup { name: "mailer", consumed: true, leased_until: None }];
    check(
        "message",
        message(&MessageLines {
            core: MessageCore { status: queen_types::MessageStatus::DeadLetter, payload: b"", ..core },
            error: Some("no such customer"),
            retry_count: 0,
            options: [90, 5, 1000, 3600, 0],
            mode: ModeLine { queue_mode: true, groups: 1 },
            groups: &groups,
        }),
    );
    let moved = ReplayLine {
        record: uuid("9a9a0000-0000-4000-8000-000000000001"),
        group: "mailer",
        queue: "billing.invoice",
        partition: "cust-7",
        original: "inv-903",
        transaction_id: "dlq:9a9a0000-0000-4000-8000-000000000001",
        message_id: MessageId(uuid(MESSAGE)),
        offset: Some(7),
    };
    check("replay", replayed(&moved));
    check("replay.duplicate", replayed(&ReplayLine { offset: None, ..moved }));
    check("replay.failed", replay_failed("error", "replay failed: x", None));
    check("message.no_dead_letter", no_dead_letter(PartitionId(uuid(PARTITION)), "inv-903"));
    check("dlq.purged", purged(&QueueName::new("q").unwrap(), Some(&group_named("g")), 3));
}

#[test]
fn traces() {
    let names = ["order-77".to_owned()];
    let line = TraceLine {
        id: uuid("0d0d0000-0000-4000-8000-000000000001"),
        event_type: "step",
        data: br#"{"s":"rendered"}"#,
        group: "mailer",
        created_at: at("2031-04-05T06:10:00Z"),
        names: &names,
        transaction_id: "inv-901",
        partition: PartitionId(uuid(PARTITION)),
        place: Some(("billing.invoice", "cust-7")),
    };
    check("traces", traces_of_message([line]));
    check("traces.by_name", traces_by_name([line, TraceLine { place: None, ..line }], 2, 100, 0));
    let name =
        TraceNameLine { name: "order-77", traces: 1, messages: 1, last_seen: at("2031-04-05T06:10:00Z") };
    check("traces.names", trace_names([name], 1, 50, 0));
    check("trace.answer", traced(&line.id));
}
