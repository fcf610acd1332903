//! Groups, messages, dead letters, traces and internal routes: what the conformance suite does not ask.

use serde_json::json;

use crate::edge::Edge;

#[tokio::test]
async fn mistakes_are_named() {
    let edge = Edge::start().await;
    edge.push("q", "k", "1").await;
    let seek = "/api/v1/consumer-groups/g/queues/q/seek";
    let id = "5f0c1f7e-6d0b-4b8e-9f0a-0c2b7d1e4a10";
    let long = "x".repeat(300);
    for (method, path, body, status, words) in [
        ("POST", seek, "", 400, "bad body"),
        ("POST", seek, "{}", 400, "Must specify toEnd=true or a timestamp"),
        ("POST", seek, r#"{"timestamp":"soon"}"#, 400, "timestamp: \"soon\""),
        ("POST", seek, r#"{"offset":"1"}"#, 400, "offset must be an integer of at least -1, got \"1\""),
        ("POST", seek, r#"{"position":"middle"}"#, 400, "beginning"),
        ("POST", &format!("/api/v1/consumer-groups/{long}/queues/q/seek"), "{}", 400, "1..255"),
        ("DELETE", &format!("/api/v1/consumer-groups/{long}"), "", 400, "1..255"),
        ("POST", "/api/v1/consumer-groups/g/subscription", "{}", 400, "subscriptionTimestamp is required"),
        ("GET", "/api/v1/messages?from=soon", "", 400, "from: \"soon\""),
        ("GET", "/api/v1/messages?status=odd", "", 400, "dead_letter"),
        ("GET", "/api/v1/messages/odd/k", "", 400, "invalid partitionId \"odd\": it must be a UUID"),
        ("DELETE", "/api/v1/messages/odd/k", "", 400, "UUID"),
        ("POST", "/api/v1/messages/odd/k/retry", "", 400, "UUID"),
        ("POST", "/api/v1/dlq/odd/replay", "", 400, "invalid id \"odd\""),
        ("POST", &format!("/api/v1/dlq/{id}/replay"), "", 404, "Dead letter not found"),
        ("DELETE", "/api/v1/dlq", "", 400, "queue is required"),
        ("GET", &format!("/api/v1/messages/{id}/k"), "", 404, "Message not found"),
        ("GET", "/api/v1/traces/odd/k", "", 400, "UUID"),
        ("POST", "/api/v1/traces", "{}", 400, "transactionId and partitionId are required"),
        ("POST", "/internal/api/notify", "{}", 400, "queue is required"),
    ] {
        let answer = edge.call(method, path, body.to_owned()).await;
        let error = answer.refusal(status);
        assert!(error.contains(words), "{method} {path}: {error}");
        assert_eq!(answer.json().get("code"), None, "a missing thing is no missing route");
    }
}

#[tokio::test]
async fn pages_are_clamped_and_odd_keys_found() {
    let edge = Edge::start().await;
    edge.push("q", "k", "1").await;
    for path in
        ["/api/v1/messages?limit=-1", "/api/v1/dlq?limit=-5&offset=-1", "/api/v1/traces/names?limit=-1"]
    {
        let answer = edge.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }
    assert_eq!(edge.get("/api/v1/messages?limit=99999999999999").await.json()["total"], 1);
    let none = edge.get("/api/v1/traces/5f0c1f7e-6d0b-4b8e-9f0a-0c2b7d1e4a10/a%00b").await;
    assert_eq!((none.status, none.json()), (200, json!({"traces": []})));
    assert_eq!(edge.get("/api/v1/traces/by-name/a%00b").await.json()["total"], 0);
    let nul = edge.get("/api/v1/messages/5f0c1f7e-6d0b-4b8e-9f0a-0c2b7d1e4a10/a%00b").await;
    assert_eq!(nul.status, 404);
}

#[tokio::test]
async fn identity_and_mesh_of_a_broker_alone() {
    let edge = Edge::start().await;
    let me = edge.get("/auth/me").await.json();
    assert_eq!(
        (&me["role"], &me["standalone"], &me["cluster"]),
        (&json!("admin"), &json!(true), &json!(null))
    );
    assert_eq!(me["clusters"].as_array().map(Vec::len), Some(1));
    let login = edge.get("/auth/login").await;
    assert_eq!((login.status, login.header("location")), (303, Some("/")));
    assert_eq!(edge.post("/auth/logout", "").await.json(), json!({"ok": true}));
    for path in ["/internal/api/shared-state/stats", "/internal/api/inter-instance/stats"] {
        let stats = edge.get(path).await.json();
        assert_eq!((&stats["enabled"], &stats["reason"]), (&json!(false), &json!("no_peers")), "{path}");
    }
    let told = edge.post("/internal/api/notify", r#"{"queue":"q","partition":"p"}"#).await;
    assert_eq!((told.status, told.json()), (200, json!({"status": "ok"})));
}
