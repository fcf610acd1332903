use crate::edge::Edge;

#[tokio::test]
async fn an_extension_answers_200_for_every_well_formed_call() {
    let edge = Edge::start().await;
    edge.push("q", "t0", "0").await;
    let message = edge.pop("queue/q?leaseSeconds=5").await;
    let lease = message["leaseId"].as_str().unwrap();
    for body in ["", "{}", r#"{"seconds":120}"#] {
        let answer = edge.post(&format!("/api/v1/lease/{lease}/extend"), body).await;
        assert_eq!(answer.status, 200);
        let answer = answer.json();
        assert_eq!((answer["success"].as_bool(), answer["renewed"].as_i64()), (Some(true), Some(1)));
        assert_eq!(answer["leaseId"], *lease);
        assert!(answer["expiresAt"].is_string());
        assert_eq!(answer["expiresAt"], answer["newExpiresAt"]);
        assert_eq!(answer["expiresAt"], answer["lease_expires_at"]);
    }
    for unknown in ["nolease", "a%00b", "a%2Fb"] {
        let answer = edge.post(&format!("/api/v1/lease/{unknown}/extend"), "").await;
        assert_eq!(answer.status, 200);
        assert_eq!(
            (answer.json()["success"].as_bool(), answer.json()["expiresAt"].is_null()),
            (Some(false), true)
        );
    }
    for body in [r#"{"seconds":0}"#, r#"{"seconds":null}"#, "[]", "{"] {
        edge.post(&format!("/api/v1/lease/{lease}/extend"), body).await.refusal(400);
    }
}
