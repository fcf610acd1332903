use std::time::{Duration, Instant};

use queen_http::Drained;
use queen_testkit::wait_until;
use tokio::net::TcpStream;

use crate::edge::Edge;

#[tokio::test]
async fn a_shutdown_answers_parked_pops_and_closes_their_connections() {
    let edge = Edge::start().await;
    let mut client = edge.connect().await;
    let poll =
        tokio::spawn(
            async move { client.call("GET", "/api/v1/pop/queue/q?wait=true&timeout=60000", "").await },
        );
    wait_until("the pop to park", Duration::from_secs(10), async || !edge.broker.parked().is_empty())
        .await
        .unwrap();
    let began = Instant::now();
    edge.stop.cancel();
    let answer = poll.await.unwrap();
    assert_eq!((answer.status, answer.header("connection")), (204, Some("close")));
    assert_eq!(edge.served.await.unwrap(), Drained::Clean);
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(TcpStream::connect(edge.addr).await.is_err(), "the listener is gone");
}

#[tokio::test]
async fn the_drain_delay_keeps_accepting_while_not_ready() {
    let edge = Edge::start_with(|http| http.drain_delay = Duration::from_secs(30)).await;
    edge.stop.cancel();
    wait_until("readiness to turn", Duration::from_secs(10), async || {
        edge.get("/readyz").await.status == 503
    })
    .await
    .unwrap();
    edge.push("q", "t0", "0").await;
    edge.served.abort();
}

#[tokio::test]
async fn a_request_that_never_ends_is_dropped_at_the_limit() {
    let edge = Edge::start_with(|http| http.shutdown_timeout = Duration::from_millis(200)).await;
    let mut half = TcpStream::connect(edge.addr).await.unwrap();
    let head = b"POST /api/v1/push HTTP/1.1\r\nhost: q\r\ncontent-length: 10\r\n\r\n{";
    tokio::io::AsyncWriteExt::write_all(&mut half, head).await.unwrap();
    // Another request on a connection of its own: the first has been accepted before it.
    assert_eq!(edge.get("/status").await.status, 200);
    edge.stop.cancel();
    assert_eq!(edge.served.await.unwrap(), Drained::Dropped(1));
}
