use serde_json::json;

use crate::edge::Edge;

#[tokio::test]
async fn operations_commit_together_and_are_answered_flat() {
    let edge = Edge::start().await;
    edge.push("src", "m0", "0").await;
    let message = edge.pop("queue/src").await;
    let body = format!(
        r#"{{"operations":[{{"type":"ack","transactionId":"m0","partitionId":{}}},
            {{"type":"push","items":[{{"queue":"dst","transactionId":"d0","payload":{{"z":1.10,"a":[ 1 ]}}}},{{"queue":"dst"}}]}}],
            "requiredLeases":[{}]}}"#,
        message["partitionId"], message["leaseId"]
    );
    let answer = edge.post("/api/v1/transaction", body.clone()).await;
    assert_eq!(answer.status, 200);
    let answer = answer.json();
    assert_eq!(answer["success"], true, "{answer}");
    assert_eq!(
        answer["results"][0],
        json!({"index": 0, "type": "ack", "success": true, "transactionId": "m0", "error": null, "dlq": false})
    );
    assert_eq!(
        (&answer["results"][1]["type"], &answer["results"][1]["queueName"]),
        (&json!("push"), &json!("dst"))
    );
    assert_eq!(answer["results"][2]["index"], 2);
    let popped = edge.get("/api/v1/pop/queue/dst").await;
    let text = std::str::from_utf8(&popped.body).unwrap();
    assert!(text.contains(r#""data":{"z":1.10,"a":[ 1 ]},"#) && text.contains(r#""data":{},"#), "{text}");

    let again = edge.post("/api/v1/transaction", body).await;
    assert_eq!(again.status, 200);
    let again = again.json();
    assert_eq!(
        (&again["success"], &again["reason"], &again["results"]),
        (&json!(false), &json!("duplicate"), &json!([]))
    );
    assert_eq!(again["duplicates"], json!([{"index": 1, "messageId": answer["results"][1]["messageId"]}]));
}

#[tokio::test]
async fn refusals_have_the_shape_of_an_answer() {
    let edge = Edge::start().await;
    for body in [
        "[]",
        "{}",
        r#"{"operations":[{"type":"delete"}]}"#,
        r#"{"operations":[{"type":"push","payload":1}]}"#,
        r#"{"operations":[],"kv":[{"op":"get"}]}"#,
        r#"{"operations":[{"type":"ack","partitionId":"x"}]}"#,
    ] {
        let answer = edge.post("/api/v1/transaction", body).await;
        answer.refusal(400);
        let answer = answer.json();
        assert_eq!((&answer["success"], &answer["reason"]), (&json!(false), &json!("bad_request")), "{body}");
        assert_eq!(answer["results"], json!([]));
        assert!(answer["transactionId"].is_string());
    }
    assert!(edge.post("/api/v1/transaction", "{").await.refusal(400).starts_with("bad body: "));
    let empty = edge.post("/api/v1/transaction", r#"{"operations":[]}"#).await.json();
    assert_eq!((&empty["success"], &empty["results"]), (&json!(true), &json!([])));
}
