//! Requests and answers against the files of `golden/`: change a key there first, then in the code. A golden file may
//! be wrapped; line breaks and indentation are no part of it.
#![allow(clippy::unwrap_used)]

use queen_types::{
    AckStatus, MessageId, PartitionId, PushStatus, QueueId, QueueName, QueueOptions, Timestamp, Uuid,
};
use queen_wire::*;

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
