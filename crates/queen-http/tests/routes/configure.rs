use crate::edge::Edge;

#[tokio::test]
async fn options_merge_and_are_echoed() {
    let edge = Edge::start().await;
    let first = edge
        .post(
            "/api/v1/configure",
            r#"{"queue":"q","namespace":"n","task":null,"options":{"leaseTime":90,"retryLimit":"5"}}"#,
        )
        .await;
    assert_eq!(first.status, 200);
    let first = first.json();
    assert_eq!((first["configured"].as_bool(), first["namespace"].as_str()), (Some(true), Some("n")));
    assert_eq!(
        (first["options"]["leaseTime"].as_i64(), first["options"]["retryLimit"].as_i64()),
        (Some(90), Some(5))
    );

    let merged =
        edge.post("/api/v1/configure", r#"{"queue":"q","options":{"retryLimit":null,"ttl":7}}"#).await.json();
    assert_eq!(merged["queueId"], first["queueId"]);
    assert_eq!(merged["namespace"], "n");
    assert_eq!(merged["options"]["leaseTime"], 90);
    assert_eq!(merged["options"]["retryLimit"], 3);

    let replaced = edge.post("/api/v1/configure", r#"{"queue":"q","mode":"replace","ttl":9}"#).await.json();
    assert_eq!(
        (replaced["namespace"].as_str(), replaced["options"]["leaseTime"].as_i64()),
        (Some(""), Some(300))
    );
    assert_eq!(replaced["options"]["ttl"], 9);
}

#[tokio::test]
async fn refusals_store_nothing() {
    let edge = Edge::start().await;
    for options in
        [r#"{"leaseTime":-1}"#, r#"{"retentionEnabled":"maybe"}"#, r#"{"leaseTime":5,"retryLimit":[]}"#]
    {
        edge.post("/api/v1/configure", format!(r#"{{"queue":"q","options":{options}}}"#)).await.refusal(400);
    }
    let refused =
        edge.post("/api/v1/configure", r#"{"queue":"q","options":{"encryptionEnabled":true}}"#).await;
    assert!(refused.refusal(422).contains("encryption key"));
    assert_eq!(edge.get("/api/v1/resources/queues/q").await.status, 404);
}
