//! The proxy in front of a server that echoes.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::time::Duration;

use queen_testkit::{FaultProxy, wait_until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Long enough for loopback, short enough to wait for in vain.
const SOON: Duration = Duration::from_millis(200);
const LIMIT: Duration = Duration::from_secs(10);

async fn echo_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                tokio::io::copy(&mut read, &mut write).await
            });
        }
    });
    port
}

async fn started() -> FaultProxy {
    FaultProxy::start("127.0.0.1", echo_server().await).await.unwrap()
}

async fn connect(proxy: &FaultProxy) -> TcpStream {
    TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap()
}

async fn echo(stream: &mut TcpStream, text: &[u8]) -> std::io::Result<Vec<u8>> {
    stream.write_all(text).await?;
    let mut answer = vec![0; text.len()];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

/// The reset of a new connection may come as early as in the connect.
async fn connect_and_echo(proxy: &FaultProxy, text: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.port())).await?;
    echo(&mut stream, text).await
}

#[tokio::test]
async fn it_carries_bytes_both_ways() {
    let proxy = started().await;
    let mut stream = connect(&proxy).await;
    assert_eq!(echo(&mut stream, b"hello").await.unwrap(), b"hello");
    let large: Vec<u8> = (0..2_000_000_u32).map(|i| (i % 251) as u8).collect();
    let (mut read, mut write) = stream.split();
    let mut answer = vec![0; large.len()];
    let (written, received) = tokio::join!(write.write_all(&large), read.read_exact(&mut answer));
    written.unwrap();
    received.unwrap();
    assert!(answer == large);
    assert_eq!(proxy.accepted(), 1);
}

#[tokio::test]
async fn a_cut_resets_old_and_new_connections_until_it_is_restored() {
    let proxy = started().await;
    let mut old = connect(&proxy).await;
    echo(&mut old, b"1").await.unwrap();

    proxy.cut();
    let failed = timeout(LIMIT, echo(&mut old, b"2")).await.unwrap();
    assert!(failed.is_err(), "the old connection is gone");
    let failed = timeout(LIMIT, connect_and_echo(&proxy, b"3")).await.unwrap();
    assert!(failed.is_err(), "a new one is reset");

    proxy.restore();
    assert_eq!(echo(&mut connect(&proxy).await, b"4").await.unwrap(), b"4");
    assert!(echo(&mut old, b"5").await.is_err(), "what was cut stays cut");
}

#[tokio::test]
async fn a_blackhole_holds_bytes_back_and_keeps_connections() {
    let proxy = started().await;
    let mut old = connect(&proxy).await;
    echo(&mut old, b"1").await.unwrap();

    proxy.blackhole();
    let mut new = connect(&proxy).await;
    wait_until("the second connection", LIMIT, async || proxy.accepted() == 2).await.unwrap();
    for stream in [&mut old, &mut new] {
        stream.write_all(b"later").await.unwrap();
        let mut byte = [0];
        timeout(SOON, stream.read(&mut byte)).await.expect_err("nothing arrives, and nothing is closed");
    }

    proxy.restore();
    for stream in [&mut old, &mut new] {
        let mut answer = [0; 5];
        timeout(LIMIT, stream.read_exact(&mut answer)).await.unwrap().unwrap();
        assert_eq!(&answer, b"later");
    }
}

#[tokio::test]
async fn a_blackhole_can_end_in_a_cut() {
    let proxy = started().await;
    let mut stream = connect(&proxy).await;
    echo(&mut stream, b"1").await.unwrap();
    proxy.blackhole();
    stream.write_all(b"lost").await.unwrap();
    proxy.cut();
    let mut byte = [0];
    let ended = timeout(LIMIT, stream.read(&mut byte)).await.unwrap();
    assert!(!matches!(ended, Ok(1..)), "{ended:?}");
}

#[tokio::test]
async fn a_dropped_proxy_refuses() {
    let proxy = started().await;
    let port = proxy.port();
    drop(proxy);
    wait_until("the port to close", LIMIT, async || TcpStream::connect(("127.0.0.1", port)).await.is_err())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_missing_target_looks_like_a_reset() {
    let proxy = FaultProxy::start("127.0.0.1", 1).await.unwrap();
    assert!(timeout(LIMIT, connect_and_echo(&proxy, b"1")).await.unwrap().is_err());
}
