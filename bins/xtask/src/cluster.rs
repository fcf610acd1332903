//! A private PostgreSQL for one task.

use std::time::Duration;

use anyhow::Context;
use queen_pgcluster::{Cluster, ClusterOptions, Shutdown};
use tokio::runtime::{Builder, Runtime};

/// How a server goes away.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outage {
    /// SIGKILL.
    Kill,
    /// Without a checkpoint.
    Immediate,
    /// In order.
    Fast,
}

/// A cluster that ends with this value, or with this process if that is killed.
pub(crate) struct TaskCluster {
    // An option so that it can be stopped, and dropped, inside the runtime.
    cluster: Option<Cluster>,
    runtime: Runtime,
}

impl TaskCluster {
    /// One that forgets what it wrote when the machine goes down: for tests.
    pub(crate) fn start() -> anyhow::Result<TaskCluster> {
        Self::launch(false)
    }

    /// One that syncs every commit: for figures.
    pub(crate) fn start_durable() -> anyhow::Result<TaskCluster> {
        Self::launch(true)
    }

    fn launch(fsync: bool) -> anyhow::Result<TaskCluster> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let directory =
            tempfile::Builder::new().prefix("queen-xtask-").tempdir().context("make a directory")?;
        let options = ClusterOptions { fsync, ..ClusterOptions::for_tests(directory.path()) };
        let cluster = runtime.block_on(Cluster::start_ephemeral(options)).context("start PostgreSQL")?;
        // The cluster deletes it.
        let _ = directory.keep();
        println!("PostgreSQL {} on port {}", cluster.binaries().major(), cluster.port());
        Ok(TaskCluster { cluster: Some(cluster), runtime })
    }

    /// Takes the server away for some time and brings it back.
    pub(crate) fn outage(&mut self, how: Outage, gone: Duration) -> anyhow::Result<()> {
        let Some(cluster) = &mut self.cluster else { return Ok(()) };
        self.runtime.block_on(async {
            match how {
                Outage::Kill => cluster.kill().await?,
                Outage::Immediate => cluster.stop_immediate().await?,
                Outage::Fast => cluster.shut_down(Shutdown::Fast).await?,
            }
            tokio::time::sleep(gone).await;
            cluster.restart().await
        })?;
        Ok(())
    }

    pub(crate) fn port(&self) -> u16 {
        self.cluster.as_ref().map_or(0, Cluster::port)
    }
}

impl Drop for TaskCluster {
    fn drop(&mut self) {
        if let Some(cluster) = self.cluster.take()
            && let Err(error) = self.runtime.block_on(cluster.stop())
        {
            eprintln!("stop PostgreSQL: {error}");
        }
    }
}
