use queen_http::Render;
use serde_json::json;

use crate::edge::Edge;

#[tokio::test]
async fn health_and_readiness_of_a_running_broker() {
    let edge = Edge::start_with(|http| http.version = "9.8.7".to_owned()).await;
    let health = edge.get("/health").await;
    assert_eq!(health.status, 200);
    assert_eq!(
        health.json(),
        json!({"status": "healthy", "database": "connected", "engine": "segments-rust", "version": "9.8.7"})
    );
    let ready = edge.get("/readyz?strict=1").await;
    assert_eq!((ready.status, &ready.json()["ready"]), (200, &json!(true)));
    assert_eq!(edge.get("/livez").await.json(), json!({"alive": true}));
    assert_eq!(edge.get("/status").await.json(), json!({"status": "ok", "engine": "segments-rust"}));
}

#[tokio::test]
async fn a_draining_broker_is_neither_healthy_nor_ready() {
    let edge = Edge::start().await;
    edge.broker.drain();
    let health = edge.get("/health").await;
    assert_eq!((health.status, &health.json()["database"]), (503, &json!("connected")));
    let ready = edge.get("/readyz").await;
    assert_eq!((ready.status, &ready.json()["draining"]), (503, &json!(true)));
    assert_eq!(edge.get("/livez").await.status, 200);
}

#[tokio::test]
async fn metrics_pages() {
    let edge = Edge::start_with(|http| http.prometheus = Some(Render::new(|| "page\n".to_owned()))).await;
    let page = edge.get("/metrics/prometheus").await;
    assert_eq!((page.status, &page.body[..]), (200, &b"page\n"[..]));
    assert_eq!(page.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    assert_eq!(edge.get("/metrics").await.json()["database"]["poolSize"], 0);
}
