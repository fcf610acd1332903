use serde_json::{Value, json};

use crate::edge::Edge;

fn body(message: &Value, status: &str) -> Value {
    json!({"transactionId": message["transactionId"], "partitionId": message["partitionId"],
           "leaseId": message["leaseId"], "status": status, "error": null, "consumerGroup": null})
}

#[tokio::test]
async fn a_single_ack_is_an_array_of_one() {
    let edge = Edge::start().await;
    edge.push("q", "t0", "0").await;
    let message = edge.pop("queue/q").await;
    let answer = edge.post("/api/v1/ack", body(&message, "completed").to_string()).await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.json(),
        json!([{"index": 0, "transactionId": "t0", "success": true, "error": null, "leaseReleased": true,
                "dlq": false, "noop": false}])
    );
}

#[tokio::test]
async fn a_batch_answers_every_item_and_dead_letters_are_listed() {
    let edge = Edge::start().await;
    for (key, payload) in [("t0", "0"), ("t1", r#"{"a" : 1.50}"#)] {
        edge.push("q", key, payload).await;
    }
    let popped = edge.get("/api/v1/pop/queue/q").await.json();
    let mut poison = body(&popped["messages"][1], "dlq");
    poison["error"] = "bad\u{0}one".into();
    let acks = json!({"acknowledgments": [body(&popped["messages"][0], "ok"), poison,
        {"transactionId": "x", "status": "completed"}, {"partitionId": "nope"}]});
    let results = edge.post("/api/v1/ack/batch", acks.to_string()).await.json();
    assert_eq!((&results[0]["success"], &results[0]["dlq"]), (&json!(true), &json!(false)));
    assert_eq!((&results[1]["success"], &results[1]["dlq"]), (&json!(true), &json!(true)));
    assert_eq!(results[2]["error"], "partitionId is required");
    assert!(results[3]["error"].as_str().unwrap().starts_with("invalid partitionId"));
    assert_eq!(edge.post("/api/v1/ack/batch", "{}").await.body, "[]");

    let page = edge.get("/api/v1/dlq?queue=q&limit=-1&from=2000-01-01").await.json();
    assert_eq!(page["total"], 1);
    let page = edge.get("/api/v1/dlq?queue=q").await;
    let letter = &page.json()["messages"][0];
    assert_eq!(letter["errorMessage"], "bad\u{fffd}one");
    assert_eq!(letter["partition"], "p");
    assert!(std::str::from_utf8(&page.body).unwrap().contains(r#""data":{"a" : 1.50},"#));
}

#[tokio::test]
async fn malformed_bodies_are_refused() {
    let edge = Edge::start().await;
    for path in ["/api/v1/ack", "/api/v1/ack/batch"] {
        for body in ["", "{", "[]", r#"{"transactionId":5,"acknowledgments":5}"#] {
            assert!(edge.post(path, body).await.refusal(400).starts_with("bad body: "), "{path} {body}");
        }
    }
}
