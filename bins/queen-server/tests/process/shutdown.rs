//! Signals, and what a process does between the first and its end.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::program::{Program, endless_request, http, try_http, wait_until};
use crate::settings::{Settings, free_port, loopback};

/// L-01: parked pops end at once and empty, pushes in flight are answered, and the process is gone in two seconds.
#[tokio::test]
async fn a_signal_ends_parked_pops_and_finishes_pushes() {
    let db = queen_testkit::db().await.unwrap();
    let port = free_port();
    let addr = loopback(port);
    let mut program = Program::start(&[], &Settings::new(&db, port).pairs());
    program.line_with("listening");
    let poll = move || http(addr, "GET", "/api/v1/pop/queue/idle?wait=true&timeout=30000", "").0;
    let pops: Vec<_> = (0..20).map(|_| std::thread::spawn(poll)).collect();
    wait_until("the pops to park", || {
        http(addr, "GET", "/metrics/prometheus", "")
            .1
            .contains("queen_parked_long_polls{queue=\"idle\"} 20\n")
    });

    // The pushes wait for the lock of their partition's row, so that they are in flight for certain.
    assert_eq!(http(addr, "POST", "/api/v1/push", r#"{"items":[{"queue":"q","payload":0}]}"#).0, 201);
    let client = db.connect().await.unwrap();
    client.batch_execute("BEGIN; SELECT id FROM queen.log_partitions FOR UPDATE").await.unwrap();
    let push = |n: usize| {
        move || http(addr, "POST", "/api/v1/push", &format!(r#"{{"items":[{{"queue":"q","payload":{n}}}]}}"#))
    };
    let pushes: Vec<_> = (0..5).map(|n| std::thread::spawn(push(n))).collect();
    let watcher = db.connect().await.unwrap();
    loop {
        let blocked = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        if watcher.query_one(blocked, &[]).await.unwrap().get::<_, i64>(0) > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Requests are read in the order in which they come, so after this answer all five are in.
    assert_eq!(http(addr, "GET", "/status", "").0, 200);
    std::thread::sleep(Duration::from_millis(100));

    let began = Instant::now();
    program.signal(Signal::TERM);
    for pop in pops {
        assert_eq!(pop.join().unwrap(), 204);
    }
    assert!(began.elapsed() < Duration::from_secs(2), "pops took {:?}", began.elapsed());
    assert!(try_http(addr, "GET", "/status", "").is_none(), "nobody is let in any more");
    client.batch_execute("COMMIT").await.unwrap();
    for push in pushes {
        let (status, body) = push.join().unwrap();
        assert!(status == 201 && body.contains(r#""status":"queued""#), "{body}");
    }
    assert_eq!(program.ended().code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(2), "it took {:?}", began.elapsed());
    let stored = "SELECT sum(end_offset - base_offset + 1)::bigint FROM queen.log_segments";
    assert_eq!(watcher.query_one(stored, &[]).await.unwrap().get::<_, i64>(0), 6);
}

/// L-02: a request that never ends holds the process up to the limit, and not longer.
#[tokio::test]
async fn the_limit_ends_what_does_not_end_by_itself() {
    let db = queen_testkit::db().await.unwrap();
    let port = free_port();
    let settings = Settings::new(&db, port).with("QUEEN_SHUTDOWN_TIMEOUT_MS", "400");
    let mut program = Program::start(&[], &settings.pairs());
    program.line_with("listening");
    let _open = endless_request(loopback(port));
    let began = Instant::now();
    program.signal(Signal::TERM);
    program.line_with("time limit reached, connections dropped");
    assert_eq!(program.ended().code(), Some(0));
    assert!(began.elapsed() >= Duration::from_millis(400));
}

/// With a drain delay the listener stays open and is not ready, until the delay is over.
#[tokio::test]
async fn a_balancer_gets_time_to_notice() {
    let db = queen_testkit::db().await.unwrap();
    let port = free_port();
    let addr = loopback(port);
    let settings = Settings::new(&db, port).with("QUEEN_DRAIN_DELAY_MS", "1500");
    let mut program = Program::start(&[], &settings.pairs());
    program.line_with("listening");
    let began = Instant::now();
    program.signal(Signal::TERM);
    program.line_with("signal received");
    wait_until("readiness to turn", || http(addr, "GET", "/readyz", "").0 == 503);
    assert_eq!(http(addr, "GET", "/health", "").0, 503);
    assert_eq!(http(addr, "GET", "/livez", "").0, 200);
    assert_eq!(http(addr, "POST", "/api/v1/push", r#"{"items":[{"queue":"q","payload":0}]}"#).0, 201);
    assert_eq!(program.ended().code(), Some(0));
    assert!(began.elapsed() >= Duration::from_millis(1500));
}

/// A background task that cannot be kept running ends the broker, in order and with a code of its own.
#[tokio::test]
async fn a_task_that_ends_too_often_ends_the_process_with_70() {
    let db = queen_testkit::db().await.unwrap();
    let port = free_port();
    let settings = Settings::new(&db, port);
    let mut program = Program::start(&["provoke", "reconcile"], &settings.pairs());
    program.line_with("listening");
    assert!(program.line_with("the broker cannot go on").contains("reconcile"));
    program.line_with("shutdown complete");
    assert_eq!(program.ended().code(), Some(70));
    // Nothing is left behind that the next one would trip over.
    let mut next = Program::start(&[], &settings.pairs());
    next.line_with("listening");
    assert_eq!(next.stop(), Some(0));
}
