//! Answers of pops that do not reach the client: their messages are there again at once, and nothing is charged.

use std::time::Duration;

use queen_testkit::wait_until;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::edge::Edge;

const SOON: Duration = Duration::from_secs(5);

async fn asks(edge: &Edge, path: &str) -> TcpStream {
    let mut client = TcpStream::connect(edge.addr).await.unwrap();
    let request = format!("GET /api/v1/pop/{path} HTTP/1.1\r\nhost: q\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    client
}

/// Closes with a reset.
fn goes(client: TcpStream) {
    client.set_zero_linger().unwrap();
    drop(client);
}

async fn leases(edge: &Edge) -> i64 {
    let client = edge.db.connect().await.unwrap();
    let sql = "SELECT count(*) FROM queen.log_consumers WHERE worker_id IS NOT NULL";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

async fn leased(edge: &Edge, count: i64) {
    wait_until(&format!("{count} leases"), SOON, async || leases(edge).await == count).await.unwrap();
}

/// More than the system buffers for a client that reads nothing.
#[tokio::test]
async fn an_answer_that_is_cut_off_in_the_middle_gives_its_lease_back() {
    let edge = Edge::start_with(|http| http.max_body_bytes = 64 << 20).await;
    let payload = format!("\"{}\"", "x".repeat(1 << 20));
    for key in 0..7 {
        edge.push("q", &format!("t{key}"), &payload).await;
    }
    for _ in 0..2 {
        let client = asks(&edge, "queue/q?batch=100").await;
        leased(&edge, 1).await;
        goes(client);
        leased(&edge, 0).await;
    }
    // The next consumer does not wait for a lease, and finds the first delivery.
    let answer = edge.get("/api/v1/pop/queue/q?batch=100").await.json();
    assert_eq!(answer["messages"].as_array().unwrap().len(), 7);
    assert_eq!(answer["messages"][0]["deliveryAttempt"], 1);
    // Its own lease is in force.
    assert_eq!(leases(&edge).await, 1);
}

#[tokio::test]
async fn a_client_that_has_its_answer_keeps_its_lease_however_it_goes() {
    let edge = Edge::start().await;
    edge.push("q", "t", "1").await;
    let mut client = asks(&edge, "queue/q").await;
    let mut answer = Vec::new();
    while !answer.ends_with(b"}") {
        assert_ne!(client.read_buf(&mut answer).await.unwrap(), 0);
    }
    goes(client);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(leases(&edge).await, 1);
    assert_eq!(edge.get("/api/v1/pop/queue/q").await.status, 204);
}
