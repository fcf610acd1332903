use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::edge::Edge;

#[tokio::test]
async fn a_push_is_a_201_in_request_order_and_keeps_its_bytes() {
    let edge = Edge::start().await;
    let payload = r#"{"z":1.10,"a":123456789012345678901234567890,"k":1,"k":2,"s":"\u00e9\/"}"#;
    let body = format!(
        r#"{{"items":[{{"queue":"q","payload":{payload},"transactionId":"t"}},{{"queue":"q","payload":[ 1 ],"transactionId":"t"}},
            {{"queue":"q","payload":null,"producerSub":"admin"}}]}}"#
    );
    let answer = edge.post("/api/v1/push", body).await;
    assert_eq!(answer.status, 201);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let items = answer.json();
    let statuses: Vec<_> = items.as_array().unwrap().iter().map(|i| i["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["queued", "duplicate", "queued"]);
    assert_eq!(items[0]["message_id"], items[1]["message_id"]);
    assert_eq!(items[2]["message_id"], items[2]["transaction_id"]);

    let popped = edge.get("/api/v1/pop/queue/q").await;
    let text = std::str::from_utf8(&popped.body).unwrap();
    assert!(text.contains(&format!("\"data\":{payload},")), "{text}");
    assert!(text.contains("\"data\":null,\"producerSub\":null,"), "{text}");
}

#[tokio::test]
async fn one_bad_item_refuses_all_and_the_connection_goes_on() {
    let edge = Edge::start().await;
    let mut client = edge.connect().await;
    for bad in [r#"{"queue":"","payload":1}"#, r#"{"queue":"q"}"#, "5", r#"{"queue":"q\u0000","payload":1}"#]
    {
        let body = format!(r#"{{"items":[{{"queue":"q","payload":1}},{bad}]}}"#);
        let refused = client.call("POST", "/api/v1/push", body).await;
        assert!(!refused.refusal(400).is_empty());
    }
    let long = "n".repeat(256);
    let refused = client
        .call("POST", "/api/v1/push", format!(r#"{{"items":[{{"queue":"{long}","payload":1}}]}}"#))
        .await;
    assert!(refused.refusal(400).starts_with("queue name must be 1..255 characters"));
    assert_eq!(client.call("GET", "/api/v1/pop/queue/q", "").await.status, 204);
}

#[tokio::test]
async fn a_body_over_the_cap_is_a_json_413_and_the_connection_goes_on() {
    let edge = Edge::start_with(|http| http.max_body_bytes = 100_000).await;
    let mut client = edge.connect().await;
    for path in ["/api/v1/push", "/api/v1/nothing"] {
        let refused = client.call("POST", path, vec![b'x'; 300_000]).await;
        assert!(refused.refusal(413).contains("length limit exceeded"));
    }
    assert_eq!(client.call("POST", "/api/v1/push", r#"{"items":[]}"#).await.body, "[]");
}

#[tokio::test]
async fn a_sender_that_asks_first_is_refused_before_it_sends() {
    let edge = Edge::start_with(|http| http.max_body_bytes = 10).await;
    let mut stream = TcpStream::connect(edge.addr).await.unwrap();
    let head = "POST /api/v1/push HTTP/1.1\r\nhost: q\r\ncontent-length: 11\r\nexpect: 100-continue\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 413 "), "{text}");
}

#[tokio::test]
async fn chunked_bodies_and_100_continue() {
    let edge = Edge::start().await;
    let mut stream = TcpStream::connect(edge.addr).await.unwrap();
    let head = "POST /api/v1/push HTTP/1.1\r\nhost: q\r\ntransfer-encoding: chunked\r\nexpect: 100-continue\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut interim = [0u8; 25];
    stream.read_exact(&mut interim).await.unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"6\r\n{\"item\r\n6\r\ns\":[]}\r\n0\r\n\r\n").await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 201 ") && text.ends_with("\r\n\r\n[]"), "{text}");
}
