//! The database goes away, or the process does: nothing that was accepted is lost. The names of the tests are those of
//! the scenarios in the specification.

#![allow(clippy::print_stdout, reason = "what was skipped, and figures, are told")]

mod cut;
mod full_disk;
mod maintenance;
mod order;
mod pace;
mod permanent;
mod restart;

use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use queen_core::api::{PopAnswer, PushItem, PushResult};
use queen_core::{Broker, BrokerOptions, BufferOptions, PgOptions, SpoolOptions};
use queen_testkit::{FaultProxy, TestDb, wait_until};
use queen_tests::build::{acks, item, pop_partition};
use queen_types::{AckStatus, MessageId, PushStatus, TenantId};
use tempfile::TempDir;

pub(crate) const T: TenantId = TenantId::DEFAULT;
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// A broker whose database is behind a link that can be cut, and whose spool is in a directory of its own.
pub(crate) struct Scene {
    pub(crate) broker: Broker,
    pub(crate) proxy: FaultProxy,
    pub(crate) db: TestDb,
    pub(crate) dir: TempDir,
}

/// A spool that leaves the machine's disk out of the game.
pub(crate) fn buffer(dir: &Path) -> BufferOptions {
    let mut options = BufferOptions::at(dir);
    options.files = SpoolOptions { min_free_bytes: 0, ..options.files };
    options
}

impl Scene {
    pub(crate) async fn start() -> anyhow::Result<Scene> {
        Scene::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut BufferOptions)) -> anyhow::Result<Scene> {
        let db = queen_testkit::db().await?;
        let direct = db.options();
        let proxy = FaultProxy::start(&direct.host, direct.port).await?;
        let dir = tempfile::tempdir()?;
        let mut files = buffer(dir.path());
        change(&mut files);
        let broker = Broker::start(options(&db, &proxy, files)).await?;
        Ok(Scene { broker, proxy, db, dir })
    }

    /// Stops the broker and starts another one on the same spool.
    pub(crate) async fn restart(&mut self) -> anyhow::Result<()> {
        self.broker.shutdown().await;
        self.broker = Broker::start(options(&self.db, &self.proxy, buffer(self.dir.path()))).await?;
        Ok(())
    }

    pub(crate) async fn push(&self, items: Vec<PushItem>) -> Vec<PushResult> {
        self.broker.push(T, items, None).await
    }

    /// Pushes these keys to partition `p` of queue `q`; all get that status.
    pub(crate) async fn push_all(&self, keys: &[&str], status: PushStatus) -> anyhow::Result<Vec<MessageId>> {
        let results = self.push(keys.iter().map(|key| item("q", "p", key)).collect()).await;
        for result in &results {
            ensure!(result.status == status, "{results:?}");
        }
        Ok(results.iter().map(|result| result.message_id).collect())
    }

    /// Cuts the link, and returns when no byte passes it any more.
    pub(crate) async fn cut(&self) {
        self.proxy.cut();
        for _ in 0..2 {
            if let Ok(mut probe) = tokio::net::TcpStream::connect(("127.0.0.1", self.proxy.port())).await {
                let _ = tokio::io::AsyncReadExt::read(&mut probe, &mut [0]).await;
            }
        }
    }

    pub(crate) async fn drained(&self) -> anyhow::Result<()> {
        wait_until("the spool to be empty", SOON, async || self.broker.buffered().pending == 0).await
    }

    /// Names in the spool's directory.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path()).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
        names.sort();
        names
    }
}

fn options(db: &TestDb, proxy: &FaultProxy, files: BufferOptions) -> BrokerOptions {
    let pg = PgOptions {
        host: "127.0.0.1".to_owned(),
        port: proxy.port(),
        connect_timeout: Duration::from_millis(500),
        pool_wait: Duration::from_millis(500),
        statement_timeout: Duration::from_millis(1500),
        ..db.options()
    };
    BrokerOptions { pg, buffer: Some(files), degraded_start: true, ..queen_tests::options() }
}

/// Everything in partition `p` of queue `q`, in order, acked: keys and ids.
pub(crate) async fn consume(broker: &Broker, partition: &str) -> anyhow::Result<Vec<(String, MessageId)>> {
    let mut found = Vec::new();
    loop {
        let answer: PopAnswer = broker.pop(T, pop_partition("q", partition, 1000)).await?;
        if answer.is_empty() {
            return Ok(found);
        }
        let messages = answer.partitions.iter().flat_map(|p| &p.messages);
        found.extend(messages.map(|(_, m)| (m.transaction_id.to_string(), m.id)));
        broker.ack(T, queen_types::Group::queue_mode(), acks(&answer, AckStatus::Completed)).await;
    }
}

pub(crate) fn keys(found: &[(String, MessageId)]) -> Vec<&str> {
    found.iter().map(|(key, _)| key.as_str()).collect()
}
