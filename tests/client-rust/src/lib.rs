//! What the tests of the published Rust client share: a broker of their own, a client for it, and plain HTTP for
//! what the client has no method for.

use anyhow::Context;
use queen_mq::{Config, Message, Queen};
use queen_tests::broker::{Broker, TestBroker};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A broker on a database of its own, and a client for it.
pub struct Fixture {
    /// The published client. It tries every request once, so that an error is seen and not retried away.
    pub queen: Queen,
    broker: TestBroker,
}

impl Fixture {
    /// Starts the broker and connects.
    pub async fn start() -> anyhow::Result<Fixture> {
        let broker = Broker::start().await?;
        let queen = Queen::connect(Config::new(broker.url()).retry_attempts(1))?;
        Ok(Fixture { queen, broker })
    }

    /// Sends a request without a body; its status and its JSON (`null` when there is none).
    pub async fn raw(&self, method: &str, path: &str) -> anyhow::Result<(u16, Value)> {
        let url = self.broker.url();
        let authority = url.strip_prefix("http://").context("an http URL")?.trim_end_matches('/');
        let mut stream = TcpStream::connect(authority).await?;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {authority}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let (head, body) = answer.split_once("\r\n\r\n").context("an answer with a head")?;
        let status = head.split(' ').nth(1).context("a status line")?.parse()?;
        Ok((status, serde_json::from_str(body).unwrap_or(Value::Null)))
    }

    /// Backlog of a group, or of the queue.
    pub async fn pending(&self, queue: &str, group: Option<&str>) -> anyhow::Result<i64> {
        let depth = self.queen.admin().queue_depth(queue, group).await?;
        depth["pending"].as_i64().with_context(|| format!("a depth without pending: {depth}"))
    }
}

/// The payloads of messages, in their order.
pub fn data(messages: &[Message]) -> Vec<Value> {
    messages.iter().map(|message| message.data.clone()).collect()
}

/// Whether an ack was refused. The client may raise a refusal or hand it over; both say so.
pub fn refused(ack: &queen_mq::Result<queen_mq::AckResult>) -> bool {
    !matches!(ack, Ok(result) if result.success)
}
