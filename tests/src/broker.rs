//! A whole broker in this process: a database of its own, the broker, and its HTTP edge on a free port.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use queen_core::BrokerOptions;
use queen_http::{HttpOptions, Server};
use queen_testkit::TestDb;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Starts brokers under test.
#[derive(Debug, Clone, Copy)]
pub struct Broker;

impl Broker {
    /// A broker with default options on a new database.
    pub async fn start() -> anyhow::Result<TestBroker> {
        TestBroker::on(queen_testkit::db().await?, crate::options()).await
    }
}

/// A running broker. Dropped, it stops serving and its database goes.
pub struct TestBroker {
    core: queen_core::Broker,
    addr: SocketAddr,
    stop: CancellationToken,
    serving: Option<JoinHandle<()>>,
    db: TestDb,
}

impl TestBroker {
    /// A broker on a given database; `options` without the database part, which is set here.
    pub async fn on(db: TestDb, options: BrokerOptions) -> anyhow::Result<TestBroker> {
        let core = queen_core::Broker::start(BrokerOptions { pg: db.options(), ..options }).await?;
        let options = HttpOptions {
            bind: (Ipv4Addr::LOCALHOST, 0).into(),
            shutdown_timeout: Duration::from_secs(5),
            ..HttpOptions::default()
        };
        let server = Server::bind(options, core.clone()).await?;
        let addr = server.local_addr();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let serving = tokio::spawn(async move {
            server.serve(stopped).await;
        });
        Ok(TestBroker { core, addr, stop, serving: Some(serving), db })
    }

    /// Where it serves, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The same as an address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The broker behind the edge.
    pub fn core(&self) -> &queen_core::Broker {
        &self.core
    }

    /// Its database.
    pub fn db(&self) -> &TestDb {
        &self.db
    }

    /// Drains and stops, in the order of the server: the edge first.
    pub async fn stop(mut self) {
        self.stop.cancel();
        if let Some(serving) = self.serving.take() {
            // A panic of the server's task is the test's to see in its output.
            let _ = serving.await;
        }
        self.core.shutdown().await;
    }
}

impl Drop for TestBroker {
    fn drop(&mut self) {
        self.stop.cancel();
        self.core.drain();
        if let Some(serving) = self.serving.take() {
            serving.abort();
        }
    }
}
