//! Panics: of a handler, and of every background task.

use std::time::Duration;

use queen_core::{BrokerOptions, Fatal, RestartLaw};
use queen_http::Render;
use queen_testkit::wait_until;
use serde_json::json;

use crate::edge::Edge;

const LIMIT: Duration = Duration::from_secs(10);

/// L-07
#[tokio::test]
async fn a_panic_in_a_handler_is_a_500_of_that_request_alone() {
    let edge = Edge::start_with(|http| http.prometheus = Some(Render::new(|| panic!("provoked")))).await;
    let mut client = edge.connect().await;
    let answer = client.call("GET", "/metrics/prometheus", "").await;
    assert_eq!((answer.status, answer.json()), (500, json!({"error": "internal"})));
    assert_eq!(client.call("GET", "/status", "").await.status, 200, "on the same connection");
    edge.push("q", "t0", "0").await;
}

/// L-06: each loop is started again, the others do not notice, and what it does is done again.
#[tokio::test]
async fn a_panic_in_each_background_task_is_got_over() {
    let edge = Edge::start().await;
    let names: Vec<_> = edge.broker.background_tasks().iter().map(|task| task.name).collect();
    assert!(["admission", "floor", "hot-list"].iter().all(|name| names.contains(name)), "{names:?}");
    for name in &names {
        let others = || edge.broker.background_tasks().into_iter().filter(|task| task.name != *name);
        let before: Vec<_> = others().collect();
        assert!(edge.broker.provoke_panic(name));
        wait_until("the restart", LIMIT, async || {
            edge.broker
                .background_tasks()
                .iter()
                .any(|task| task.name == *name && task.restarts == 1 && task.up)
        })
        .await
        .unwrap();
        assert_eq!(others().collect::<Vec<_>>(), before, "the others do not notice the end of {name}");
    }
    assert!(edge.broker.is_sound());
    assert_eq!(edge.get("/livez").await.status, 200);

    // A parked pop sees what only the floor tells: messages that came by another way than this broker.
    let other = edge.beside().await;
    let mut client = edge.connect().await;
    let poll = tokio::spawn(async move {
        client.call("GET", "/api/v1/pop/queue/q?wait=true&timeout=20000&subscriptionMode=all", "").await
    });
    wait_until("the pop to park", LIMIT, async || !edge.broker.parked().is_empty()).await.unwrap();
    other.push("q", "t0", "0").await;
    assert_eq!(poll.await.unwrap().status, 200);

    // The timer of the hot list: a delayed message comes out when it is due.
    let configure = r#"{"queue":"late","options":{"delayedProcessing":1}}"#;
    edge.post("/api/v1/configure", configure).await;
    edge.push("late", "t0", "0").await;
    let path = "/api/v1/pop/queue/late?wait=true&timeout=20000&subscriptionMode=all";
    assert_eq!(edge.get(path).await.status, 200);
    other.broker.shutdown().await;
}

/// A task that cannot be kept running takes the broker with it.
#[tokio::test]
async fn a_task_that_ends_too_often_fails_liveness() {
    let db = queen_testkit::db().await.unwrap();
    let options = BrokerOptions {
        pg: db.options(),
        restarts: RestartLaw { pause: Duration::from_millis(1), restarts_max: 2, ..RestartLaw::default() },
        ..BrokerOptions::default()
    };
    let edge = Edge::on(db, options, |_| {}).await;
    edge.broker.supervise("hopeless", |_| async { panic!("provoked") });
    let fatal = tokio::time::timeout(LIMIT, edge.broker.fatal()).await.unwrap();
    assert!(matches!(fatal, Fatal::Exhausted { task: "hopeless" }), "{fatal}");
    assert_eq!(edge.get("/livez").await.status, 503);
    edge.push("q", "t0", "0").await;
}
