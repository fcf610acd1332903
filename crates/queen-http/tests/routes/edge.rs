//! A broker with its listener, and a client that shows everything of an answer.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use queen_core::{Broker, BrokerOptions};
use queen_http::{Drained, HttpOptions, Server};
use queen_testkit::TestDb;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A running broker. Dropped, it ends with the test's runtime.
pub(crate) struct Edge {
    pub(crate) addr: SocketAddr,
    pub(crate) broker: Broker,
    pub(crate) stop: CancellationToken,
    pub(crate) served: JoinHandle<Drained>,
    // Last: the database is dropped when nobody uses it any more.
    pub(crate) db: Arc<TestDb>,
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|v| v.to_str().unwrap())
    }

    /// The `error` of a JSON refusal with this status.
    pub(crate) fn refusal(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/json"));
        self.json()["error"].as_str().unwrap().to_owned()
    }
}

impl Edge {
    pub(crate) async fn start() -> Edge {
        Edge::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut HttpOptions)) -> Edge {
        let db = queen_testkit::db().await.unwrap();
        let pg = db.options();
        Edge::on(db, BrokerOptions { pg, apply_schema: false, ..BrokerOptions::default() }, change).await
    }

    /// On a database that the options lead to, directly or not.
    pub(crate) async fn on(
        db: impl Into<Arc<TestDb>>,
        options: BrokerOptions,
        change: impl FnOnce(&mut HttpOptions),
    ) -> Edge {
        let broker = Broker::start(options).await.unwrap();
        let mut http = HttpOptions { bind: "127.0.0.1:0".parse().unwrap(), ..HttpOptions::default() };
        change(&mut http);
        let server = Server::bind(http, broker.clone()).await.unwrap();
        let addr = server.local_addr();
        let stop = CancellationToken::new();
        let served = tokio::spawn(server.serve(stop.clone()));
        Edge { addr, broker, stop, served, db: db.into() }
    }

    /// Another broker on the same database.
    pub(crate) async fn beside(&self) -> Edge {
        let options =
            BrokerOptions { pg: self.db.options(), apply_schema: false, ..BrokerOptions::default() };
        Edge::on(self.db.clone(), options, |_| {}).await
    }

    /// A keep-alive connection.
    pub(crate) async fn connect(&self) -> Client {
        connect(self.addr).await
    }

    /// One request on a connection of its own.
    pub(crate) async fn call(&self, method: &str, path: &str, body: impl Into<Bytes>) -> Answer {
        self.connect().await.call(method, path, body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, "").await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> Answer {
        self.call("POST", path, body).await
    }

    /// Pushes one message to partition `p` of a queue.
    pub(crate) async fn push(&self, queue: &str, key: &str, payload: &str) {
        let body = format!(
            r#"{{"items":[{{"queue":"{queue}","partition":"p","transactionId":"{key}","payload":{payload}}}]}}"#
        );
        let answer = self.post("/api/v1/push", body).await;
        assert_eq!((answer.status, answer.json()[0]["status"].as_str()), (201, Some("queued")), "{answer:?}");
    }

    /// The first message of a pop that has to deliver.
    pub(crate) async fn pop(&self, path_and_query: &str) -> Value {
        let answer = self.get(&format!("/api/v1/pop/{path_and_query}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["messages"][0].clone()
    }
}

async fn connect(addr: SocketAddr) -> Client {
    let stream = TcpStream::connect(addr).await.unwrap();
    let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    Client { sender }
}

/// One request of somebody who does not hold the edge.
pub(crate) async fn get(addr: SocketAddr, path: &str) -> Answer {
    connect(addr).await.call("GET", path, "").await
}

/// One connection.
pub(crate) struct Client {
    sender: SendRequest<Full<Bytes>>,
}

impl Client {
    pub(crate) async fn call(&mut self, method: &str, path: &str, body: impl Into<Bytes>) -> Answer {
        self.sender.ready().await.unwrap();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "queen")
            .body(Full::new(body.into()))
            .unwrap();
        let response = self.sender.send_request(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }
}
