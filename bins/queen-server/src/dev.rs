//! `queen-server dev`: a broker on a private PostgreSQL cluster that is found, made and kept.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use queen_config::Loaded;
use queen_pgcluster::dev::{is_root, run_dir};
use queen_pgcluster::{Cluster, ClusterError, ClusterOptions};
use queen_telemetry::Recorder;
use tokio_util::sync::CancellationToken;

use crate::args::DevArgs;
use crate::serve::serve;

/// Connections beside the broker's pool: health, schema apply, a person with psql, and those the server reserves.
const SPARE_CONNECTIONS: usize = 20;

/// Serves until `stop`; the cluster goes down with the broker, however this ends.
pub(crate) async fn run(
    args: DevArgs,
    loaded: Loaded,
    recorder: Recorder,
    stop: CancellationToken,
) -> anyhow::Result<ExitCode> {
    let mut shown = crate::config::shown(&loaded);
    shown.warnings.push("queen-server dev brings its own database, address and spool directory".to_owned());
    let mut config = loaded.config;
    config.http.config = Some(shown);
    let dir = args.data.unwrap_or_else(default_dir);
    let options = cluster_options(&dir, config.broker.pg.pool_size);
    if args.fresh {
        erase(&dir, &options).await?;
    }
    make_dir(&dir)?;
    let started = tokio::select! {
        started = Cluster::start(options) => started,
        () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
    };
    let cluster = started?;

    let pg = &mut config.broker.pg;
    pg.host = cluster.socket_dir().display().to_string();
    pg.port = cluster.port();
    cluster.user().clone_into(&mut pg.user);
    pg.password = cluster.password().map(str::to_owned);
    "postgres".clone_into(&mut pg.database);
    pg.tls = Default::default();
    // What is made for one person at one machine is not open to the network by accident.
    if loaded.effective.is_default("QUEEN_BIND_ADDR") {
        config.http.bind.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    // The cluster is there, and "ready" shall mean it.
    config.broker.degraded_start = false;
    // Whoever deletes the data deletes this too.
    if let (true, Some(buffer)) = (loaded.effective.is_default("FILE_BUFFER_DIR"), &mut config.broker.buffer)
    {
        buffer.files.dir = dir.join("spool");
        buffer.fallback = None;
    }
    if let Some(port) = args.port {
        config.http.bind.set_port(port);
    }
    let served =
        serve(config.broker, config.http, recorder, stop, |_, addr| announce(addr, &dir, &cluster)).await;
    let stopped = cluster.stop().await;
    let code = served?;
    stopped.context("stop the private PostgreSQL cluster")?;
    Ok(code)
}

fn default_dir() -> PathBuf {
    let var = |name| std::env::var_os(name).map(PathBuf::from);
    run_dir(var("XDG_DATA_HOME").as_deref(), var("HOME").as_deref(), is_root())
}

fn make_dir(dir: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("make the directory {}", dir.display()))
}

fn cluster_options(dir: &Path, pool_size: usize) -> ClusterOptions {
    let connections = u32::try_from(pool_size + SPARE_CONNECTIONS).unwrap_or(u32::MAX);
    ClusterOptions { max_connections: connections, ..ClusterOptions::new(dir.join("postgres")) }
}

/// Deletes cluster and spool of a directory, unless a living owner holds it.
async fn erase(dir: &Path, options: &ClusterOptions) -> anyhow::Result<()> {
    if !options.data_dir.exists() {
        return Ok(());
    }
    // Only whoever starts a cluster holds its directory; one that no longer starts may be deleted all the same.
    match Cluster::start(options.clone()).await {
        Ok(cluster) => cluster.stop().await?,
        Err(held @ ClusterError::Held { .. }) => return Err(held.into()),
        Err(error) => tracing::warn!(target: "boot", %error, "the old cluster does not start and is deleted"),
    }
    for part in [options.data_dir.clone(), dir.join("spool")] {
        if part.exists() {
            std::fs::remove_dir_all(&part).with_context(|| format!("delete {}", part.display()))?;
        }
    }
    Ok(())
}

/// The one line for a person at a terminal.
fn announce(addr: SocketAddr, dir: &Path, cluster: &Cluster) -> anyhow::Result<()> {
    let host = if addr.ip().is_unspecified() { "127.0.0.1".to_owned() } else { addr.ip().to_string() };
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "Queen {} is ready: http://{host}:{}  (data in {}, PostgreSQL on port {})",
        env!("CARGO_PKG_VERSION"),
        addr.port(),
        dir.display(),
        cluster.port(),
    )?;
    Ok(out.flush()?)
}
