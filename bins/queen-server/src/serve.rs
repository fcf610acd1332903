//! A broker from start to drained end.

use std::net::SocketAddr;

use anyhow::Context;
use queen_core::{Broker, BrokerOptions};
use queen_http::{Drained, HttpOptions, Server};
use queen_telemetry::Recorder;
use tokio_util::sync::CancellationToken;

use crate::telemetry;

/// Starts a broker and its listener, tells `listening`, and serves until `stop`; then drains and shuts down.
pub(crate) async fn serve(
    broker_options: BrokerOptions,
    http: HttpOptions,
    recorder: Recorder,
    stop: CancellationToken,
    listening: impl FnOnce(SocketAddr) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let pg = &broker_options.pg;
    let database = format!("{}:{}/{}", pg.host, pg.port, pg.database);
    let pool = pg.pool_size;
    let started = tokio::select! {
        started = Broker::start(broker_options) => started,
        () = stop.cancelled() => return Ok(()),
    };
    let broker = started.with_context(|| format!("cannot start on the database {database}"))?;
    let upkeep = tokio::spawn(telemetry::upkeep(recorder.clone()));
    let served = listen(&broker, telemetry::serve_pages(http, recorder, broker.clone()), stop, |addr| {
        tracing::info!(target: "boot", version = env!("CARGO_PKG_VERSION"), %addr, database, pool, "listening");
        listening(addr)
    })
    .await;
    broker.shutdown().await;
    upkeep.abort();
    if served.is_ok() {
        tracing::info!(target: "shutdown", "shutdown complete");
    }
    served
}

async fn listen(
    broker: &Broker,
    http: HttpOptions,
    stop: CancellationToken,
    listening: impl FnOnce(SocketAddr) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let server = Server::bind(http, broker.clone()).await?;
    listening(server.local_addr())?;
    if let Drained::Dropped(connections) = server.serve(stop).await {
        tracing::warn!(target: "shutdown", connections, "time limit reached, connections dropped");
    }
    Ok(())
}
