use std::time::{Duration, Instant};

use queen_testkit::wait_until;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::edge::Edge;

#[tokio::test]
async fn an_empty_answer_has_no_body_and_no_type() {
    let edge = Edge::start().await;
    for path in ["/api/v1/pop/queue/q", "/api/v1/pop/queue/q/partition/p", "/api/v1/pop?namespace=n"] {
        let answer = edge.get(path).await;
        assert_eq!(answer.status, 204, "{path}");
        assert!(answer.body.is_empty());
        assert_eq!(answer.header("content-type"), None);
        assert!(matches!(answer.header("content-length"), None | Some("0")));
    }
}

#[tokio::test]
async fn the_three_routes_and_their_answers() {
    let edge = Edge::start().await;
    edge.push("billing.invoice", "t0", "0").await;
    let answer = edge.get("/api/v1/pop/queue/billing.invoice/partition/p?autopilot=true").await.json();
    assert_eq!(answer["success"], true);
    assert_eq!(answer["queue"], "billing.invoice");
    assert_eq!(answer["partition"], "p");
    assert_eq!(answer["consumerGroup"], "__QUEUE_MODE__");
    assert_eq!(answer["partitionsClaimed"], 1);
    let message = &answer["messages"][0];
    for key in ["leaseId", "partitionId", "partition", "consumerGroup"] {
        assert_eq!(message[key], answer[key], "{key}");
    }
    assert_eq!(message["transactionId"], "t0");
    assert_eq!(message["deliveryAttempt"], 1);
    assert!(message["createdAt"].as_str().unwrap().ends_with('Z'));

    let found =
        edge.get("/api/v1/pop?namespace=billing&task=invoice&consumerGroup=g&subscriptionMode=all").await;
    assert_eq!(found.json()["queue"], "");
    assert_eq!(found.json()["messages"][0]["data"], 0);

    let taken =
        edge.get("/api/v1/pop/queue/billing.invoice?consumerGroup=h&subscriptionMode=all&autoAck=true").await;
    assert_eq!(taken.json()["leaseId"], "");
    assert_eq!(taken.json()["messages"][0]["leaseId"], "");
}

#[tokio::test]
async fn refusals_take_nothing() {
    let edge = Edge::start().await;
    edge.push("q", "t0", "0").await;
    for query in [
        "batch=x",
        "batch=-1",
        "wait=1",
        "timeout=-1",
        "batch=1&batch=1",
        "consumerGroup=a%00",
        "subscriptionMode=latest",
        "subscriptionFrom=yesterday",
    ] {
        assert!(!edge.get(&format!("/api/v1/pop/queue/q?{query}")).await.refusal(400).is_empty(), "{query}");
    }
    let refused = edge.get("/api/v1/pop?namespace=&consumerGroup=g").await;
    assert_eq!(refused.refusal(400), "namespace or task is required");
    assert_eq!(
        (refused.json()["success"].clone(), refused.json()["messages"].clone()),
        (false.into(), [(); 0].map(|()| 0).to_vec().into())
    );

    let head = edge.call("HEAD", "/api/v1/pop/queue/q", "").await;
    assert_eq!((head.status, head.header("allow")), (405, Some("GET")));
    assert_eq!(edge.pop("queue/q").await["transactionId"], "t0");
}

#[tokio::test]
async fn a_client_that_goes_away_claims_nothing_afterwards() {
    let edge = Edge::start().await;
    let mut stream = TcpStream::connect(edge.addr).await.unwrap();
    stream
        .write_all(b"GET /api/v1/pop/queue/q?wait=true&timeout=30000 HTTP/1.1\r\nhost: q\r\n\r\n")
        .await
        .unwrap();
    let limit = Duration::from_secs(10);
    wait_until("the pop to park", limit, async || !edge.broker.parked().is_empty()).await.unwrap();
    drop(stream);
    wait_until("the pop to be given up", limit, async || edge.broker.parked().iter().all(|(_, n)| *n == 0))
        .await
        .unwrap();
    edge.push("q", "t0", "0").await;
    assert_eq!(edge.pop("queue/q").await["transactionId"], "t0");
}

#[tokio::test]
async fn a_long_poll_ends_at_its_timeout_and_at_a_push() {
    let edge = Edge::start().await;
    let began = Instant::now();
    assert_eq!(edge.get("/api/v1/pop/queue/q?wait=true&timeout=300").await.status, 204);
    assert!(began.elapsed() >= Duration::from_millis(300));
    let poll = edge.pop("queue/q?wait=true&timeout=20000");
    let push = async {
        wait_until("the pop to park", Duration::from_secs(10), async || !edge.broker.parked().is_empty())
            .await
            .unwrap();
        edge.push("q", "late", "0").await;
    };
    let (message, ()) = tokio::join!(poll, push);
    assert_eq!(message["transactionId"], "late");
}
