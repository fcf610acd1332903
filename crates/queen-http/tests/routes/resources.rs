use serde_json::json;

use crate::edge::Edge;

#[tokio::test]
async fn listing_detail_and_depth() {
    let edge = Edge::start().await;
    let name = "w eird/ü?#%";
    let path = "/api/v1/resources/queues/w%20eird%2F%C3%BC%3F%23%25";
    edge.push(name, "t0", "0").await;
    let list = edge.get("/api/v1/resources/queues?limit=abc").await.json();
    assert_eq!(list["queues"][0]["name"], name);
    assert_eq!(list["queues"][0]["segments"]["messages"], 1);
    assert!(
        edge.get("/api/v1/resources/queues?stats=cached").await.json()["queues"][0].get("segments").is_none()
    );

    let detail = edge.get(path).await.json();
    assert_eq!(detail["name"], name);
    assert_eq!(detail["partitions"][0]["name"], "p");
    assert_eq!(detail["totals"]["failed"], json!(null));
    assert_eq!(detail["options"]["leaseTime"], 60);

    let depth = edge.get(&format!("{path}/depth?group=g")).await.json();
    assert_eq!((&depth["group"], &depth["pending"]), (&json!("g"), &json!(1)));
    assert_eq!(depth["partitions"], json!([{"partition": "p", "pending": 1, "processing": 0, "ready": 1}]));
    assert_eq!(edge.get(&format!("{path}/depth?group=")).await.json()["group"], json!(null));
}

#[tokio::test]
async fn namespaces_and_tasks() {
    let edge = Edge::start().await;
    edge.push("billing.invoice", "t0", "0").await;
    let namespaces = edge.get("/api/v1/resources/namespaces").await.json();
    assert_eq!(
        namespaces["namespaces"],
        json!([{"namespace": "billing", "queues": 1, "partitions": 1, "messages": {"total": 1, "pending": 1}}])
    );
    assert_eq!(edge.get("/api/v1/resources/tasks").await.json()["tasks"][0]["task"], "invoice");
}

#[tokio::test]
async fn deleting_says_what_was_there() {
    let edge = Edge::start().await;
    edge.push("q", "t0", "0").await;
    let path = "/api/v1/resources/queues/q";
    let gone = edge.call("DELETE", path, "").await;
    assert_eq!((gone.status, gone.json()), (200, json!({"deleted": true, "queue": "q", "existed": true})));
    let nothing = edge.call("DELETE", path, "").await;
    assert_eq!((nothing.status, &nothing.json()["deleted"]), (200, &json!(false)));
    let missing = edge.get(path).await;
    assert_eq!(missing.refusal(404), "Queue not found");
    assert!(missing.json().get("code").is_none(), "a missing queue is not a missing route");
    assert_eq!(edge.get(&format!("{path}/depth")).await.refusal(404), "Queue not found");
    for nul in ["a%00b", "a%00b/depth"] {
        edge.get(&format!("/api/v1/resources/queues/{nul}")).await.refusal(400);
    }
}
