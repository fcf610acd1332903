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

#[tokio::test]
async fn maintenance_may_hold_transactions_back_too() {
    const TRANSACTION: &str = r#"{"operations":[{"type":"push","items":[{"queue":"held","payload":1}]}]}"#;
    let edge = Edge::start().await;
    let beside = edge.beside().await;
    let set = async |body: &str| edge.post("/api/v1/system/maintenance", body.to_owned()).await.json();
    assert_eq!(set(r#"{"enabled":true}"#).await["mirrored"], true);
    assert_eq!(
        edge.post("/api/v1/transaction", TRANSACTION).await.json()["success"],
        true,
        "it is not asked for"
    );

    let answer = set(r#"{"enabled":true,"includeTransactions":true,"wait":true}"#).await;
    assert_eq!((&answer["mirrored"], &answer["quiet"]), (&true.into(), &true.into()));
    let refused = edge.post("/api/v1/transaction", TRANSACTION).await;
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert!(refused.refusal(503).contains("held back by push maintenance"));
    // Another broker takes it over with the mode.
    assert_eq!(beside.get("/api/v1/system/maintenance").await.json()["includeTransactions"], true);
    assert_eq!(beside.post("/api/v1/transaction", TRANSACTION).await.status, 503);

    set(r#"{"enabled":false}"#).await;
    assert_eq!(edge.get("/api/v1/system/maintenance").await.json()["includeTransactions"], false);
    assert_eq!(edge.post("/api/v1/transaction", TRANSACTION).await.json()["success"], true);
}
