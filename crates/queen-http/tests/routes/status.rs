//! What a dashboard asks for: one summary for many tabs, jobs, admission, mesh, configuration.

use std::time::Duration;

use queen_http::ShownConfig;
use serde_json::{Value, json};

use crate::edge::Edge;
use crate::outage::proxied;

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[tokio::test]
async fn many_tabs_cost_one_look() {
    let edge = Edge::start_with(|http| {
        http.version = "9.8.7".to_owned();
        http.config = Some(ShownConfig { settings: "[]".to_owned(), warnings: vec!["odd".to_owned()] });
    })
    .await;
    edge.push("q", "k", "1").await;
    let refreshed = edge.post("/api/v1/stats/refresh", "").await;
    assert_eq!(refreshed.status, 200);
    let row =
        "INSERT INTO queen.worker_metrics (hostname, pid, bucket_time, push_message_count, pop_message_count)
        VALUES ('b', 1, date_trunc('minute', now()), 90, 30)";
    edge.db.connect().await.unwrap().batch_execute(row).await.unwrap();
    let first = edge.get("/api/v1/status/summary").await;
    assert_eq!(first.status, 200, "{first:?}");
    let summary = first.json();
    assert_eq!(summary["version"], "9.8.7");
    assert_eq!(summary["database"], json!({"connected": true, "schemaApplied": true}));
    assert_eq!(summary["maintenance"], json!({"push": false, "pop": false}));
    assert_eq!(
        (&summary["stats"]["queues"], &summary["stats"]["messages"]["pending"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(summary["warnings"], json!(["odd"]));
    assert_eq!(summary["parked"], 0);
    let rates: Vec<_> = ["pushPerSecond", "popPerSecond"].map(|key| summary["rates"][0][key].as_f64()).into();
    assert_eq!((summary["rates"].as_array().unwrap().len(), rates), (1, vec![Some(1.5), Some(0.5)]));

    // Whatever changes now is seen in two seconds, and not before.
    edge.push("r", "k", "1").await;
    edge.post("/api/v1/stats/refresh", "").await;
    let tabs = (0..50).map(|_| edge.get("/api/v1/status/summary"));
    for tab in futures_util::future::join_all(tabs).await {
        assert_eq!(tab.json()["stats"]["queues"], 1);
    }
    tokio::time::sleep(Duration::from_millis(2_050)).await;
    assert_eq!(edge.get("/api/v1/status/summary").await.json()["stats"]["queues"], 2);
}

#[tokio::test]
async fn the_summary_outlives_the_database() {
    let (edge, proxy) = proxied(|_, _| {}).await;
    edge.push("q", "k", "1").await;
    edge.post("/api/v1/stats/refresh", "").await;
    assert_eq!(edge.get("/api/v1/status/summary").await.json()["database"]["connected"], true);
    proxy.cut();
    tokio::time::sleep(Duration::from_millis(2_050)).await;
    let away = edge.get("/api/v1/status/summary").await;
    assert_eq!(away.status, 200);
    let away = away.json();
    assert_eq!(away["database"]["connected"], false);
    assert_eq!(away["stats"]["queues"], 1, "what was known stays");
    assert!(away["stats"]["statsAge"].as_i64().unwrap() >= 2, "and says how old it is");
}

#[tokio::test]
async fn jobs_admission_mesh_and_configuration() {
    let shown = ShownConfig {
        settings:
            r#"[{"name":"PG_PASSWORD","key":"postgres.password","value":"<set>","source":"environment"}]"#
                .to_owned(),
        warnings: Vec::new(),
    };
    let edge = Edge::start_with(|http| http.config = Some(shown)).await;
    queen_testkit::wait_until("the tasks to be declared", Duration::from_secs(10), async || {
        edge.get("/api/v1/status/jobs").await.json()["jobs"].as_array().is_some_and(|jobs| jobs.len() == 4)
    })
    .await
    .unwrap();
    let jobs = edge.get("/api/v1/status/jobs").await.json();
    let mut expected = vec![
        "task",
        "periodMs",
        "enabled",
        "holder",
        "runs",
        "nextDueAt",
        "leaseUntil",
        "lastStartAt",
        "lastEndAt",
        "lastDurationMs",
    ];
    expected.sort_unstable();
    let mut given = keys(&jobs["jobs"][0]);
    given.sort_unstable();
    assert_eq!(given, expected);
    let admission = edge.get("/api/v1/status/admission").await.json();
    assert_eq!(admission["lanes"].as_array().unwrap().len(), 4);
    assert!(admission["budget"].as_f64().unwrap() >= 1.0);
    let mesh = edge.get("/api/v1/status/mesh").await;
    assert_eq!((mesh.status, &mesh.json()["enabled"]), (200, &json!(false)));
    assert_eq!(mesh.json()["reason"], "no_peers");
    let config = edge.get("/api/v1/system/config").await.json();
    assert_eq!(config["settings"][0]["value"], "<set>");
    assert_eq!(config["settings"][0]["source"], "environment");

    let bare = Edge::start().await;
    let none = bare.get("/api/v1/system/config").await;
    assert!(none.refusal(404).contains("embeds"), "{none:?}");
    assert_eq!(none.json().get("code"), None, "a missing thing is no missing route");
}
