//! A database that refuses, is silent, or is busy: every answer is bounded in time, and it comes right by itself.

use std::time::{Duration, Instant};

use queen_core::{BrokerOptions, PgOptions};
use queen_testkit::{FaultProxy, wait_until};
use serde_json::json;

use crate::edge::Edge;

const LIMIT: Duration = Duration::from_secs(20);
const PUSH: &str = r#"{"items":[{"queue":"q","payload":1}]}"#;

/// A broker that reaches its database through a link that can be broken.
pub(crate) async fn proxied(change: impl FnOnce(&mut BrokerOptions, &FaultProxy)) -> (Edge, FaultProxy) {
    let db = queen_testkit::db().await.unwrap();
    let direct = db.options();
    let proxy = FaultProxy::start(&direct.host, direct.port).await.unwrap();
    let pg = PgOptions {
        host: "127.0.0.1".to_owned(),
        port: proxy.port(),
        pool_size: 4,
        connect_timeout: Duration::from_secs(1),
        pool_wait: Duration::from_secs(1),
        ..direct
    };
    let mut options = BrokerOptions { pg, ..BrokerOptions::default() };
    change(&mut options, &proxy);
    (Edge::on(db, options, |_| {}).await, proxy)
}

/// What became of a push, and how long that took.
async fn push(edge: &Edge) -> (String, Duration) {
    let began = Instant::now();
    let answer = edge.post("/api/v1/push", PUSH).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    (answer.json()[0]["status"].as_str().unwrap().to_owned(), began.elapsed())
}

/// A-13: nothing arrives and nothing is refused. A call in flight ends within the time to suspect the line and the time
/// to find out, the others at once; and the first that tries again after the silence brings everything back.
#[tokio::test]
async fn a_black_holed_database_costs_seconds_once_and_never_minutes() {
    let (edge, proxy) = proxied(|_, _| {}).await;
    assert_eq!(push(&edge).await.0, "queued");
    edge.post("/api/v1/push", r#"{"items":[{"queue":"other","payload":1}]}"#).await;

    proxy.blackhole();
    // On a connection that worked: 2 s to suspect it, 2 s for a new one that does not come either.
    let (status, took) = push(&edge).await;
    assert_ne!(status, "queued");
    assert!(took < Duration::from_secs(8), "the first took {took:?}");
    let began = Instant::now();
    for _ in 0..5 {
        assert_ne!(push(&edge).await.0, "queued");
    }
    // One of them may be the one who tries the line again.
    assert!(began.elapsed() < Duration::from_secs(6), "five took {:?}", began.elapsed());
    let began = Instant::now();
    assert_eq!(edge.get("/api/v1/pop/queue/q?wait=true&timeout=60000").await.status, 500);
    let health = edge.get("/health").await;
    assert_eq!((health.status, &health.json()["database"]), (503, &json!("disconnected")));
    assert!(began.elapsed() < Duration::from_secs(8), "pop and health took {:?}", began.elapsed());
    assert_eq!(edge.get("/livez").await.status, 200);

    proxy.restore();
    wait_until("pushes to be stored", LIMIT, async || push(&edge).await.0 == "queued").await.unwrap();
    wait_until("health", LIMIT, async || edge.get("/health").await.status == 200).await.unwrap();
    edge.pop("queue/other?batch=1&subscriptionMode=all").await;
}

/// L-03, seen from the API: until the schema is in place calls answer as in an outage, and then they work.
#[tokio::test]
async fn a_degraded_start_answers_as_in_an_outage_until_the_database_comes() {
    let (edge, proxy) = proxied(|options, proxy| {
        options.degraded_start = true;
        proxy.cut();
    })
    .await;
    let health = edge.get("/health").await;
    assert_eq!((health.status, &health.json()["status"]), (503, &json!("unhealthy")));
    let ready = edge.get("/readyz").await.json();
    assert_eq!((&ready["database"], &ready["schema"]), (&json!("disconnected"), &json!("pending")));
    assert_eq!(edge.get("/readyz?strict=1").await.status, 503);
    assert_eq!(edge.get("/livez").await.status, 200);
    for (method, path, body) in [
        ("GET", "/api/v1/pop/queue/q", ""),
        ("GET", "/api/v1/pop/queue/q?wait=true&timeout=60000", ""),
        ("POST", "/api/v1/configure", r#"{"queue":"q","options":{}}"#),
        ("GET", "/api/v1/resources/queues", ""),
    ] {
        let answer = edge.call(method, path, body).await;
        assert_eq!((answer.status, answer.json()), (500, json!({"error": "pool"})), "{path}");
    }
    let (status, took) = push(&edge).await;
    assert_ne!(status, "queued");
    assert!(took < Duration::from_secs(2), "it took {took:?}");

    proxy.restore();
    wait_until("readiness", LIMIT, async || edge.get("/readyz?strict=1").await.status == 200).await.unwrap();
    assert_eq!(push(&edge).await.0, "queued");
    edge.pop("queue/q?batch=1&subscriptionMode=all").await;
    assert!(edge.broker.background_tasks().iter().all(|task| task.name != "schema"), "that task is done");
}

/// L-09: health has a connection of its own.
#[tokio::test]
async fn health_answers_although_every_connection_of_the_pool_is_busy() {
    let (edge, _proxy) = proxied(|options, _| options.pg.pool_size = 4).await;
    edge.push("q", "t0", "0").await;
    let client = edge.db.connect().await.unwrap();
    client
        .batch_execute("BEGIN; LOCK TABLE queen.log_segments, queen.queues IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let busy: Vec<_> = (0..8)
        .map(|n| {
            let addr = edge.addr;
            let path = if n % 2 == 0 { "/api/v1/resources/queues" } else { "/api/v1/resources/namespaces" };
            tokio::spawn(async move {
                let _ = tokio::time::timeout(Duration::from_secs(4), crate::edge::get(addr, path)).await;
            })
        })
        .collect();
    wait_until("the pool to be used up", LIMIT, async || {
        let pool = edge.broker.pool_status();
        pool.active == 4 && pool.waiting > 0
    })
    .await
    .unwrap();
    let began = Instant::now();
    assert_eq!(edge.get("/health").await.status, 200);
    assert!(began.elapsed() < Duration::from_secs(2), "it took {:?}", began.elapsed());
    client.batch_execute("COMMIT").await.unwrap();
    for call in busy {
        call.await.unwrap();
    }
}
