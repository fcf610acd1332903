//! A broker from start to drained end.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use queen_config::Loaded;
use queen_core::{Broker, BrokerOptions, Fatal, RestartLaw};
use queen_http::{Drained, HttpOptions, Server};
use queen_telemetry::Recorder;
use tokio_util::sync::CancellationToken;

use crate::telemetry;

/// A background task ended too often: the "internal software error" of `sysexits.h`.
const EXHAUSTED: u8 = 70;

/// Starts a broker and its listener, tells `listening`, and serves until `stop` or until the broker cannot go on; then
/// drains and shuts down. The exit code of the process.
pub(crate) async fn serve(
    broker_options: BrokerOptions,
    http: HttpOptions,
    recorder: Recorder,
    stop: CancellationToken,
    listening: impl FnOnce(&Broker, SocketAddr) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let pg = &broker_options.pg;
    let database = format!("{}:{}/{}", pg.host, pg.port, pg.database);
    let pool = pg.pool_size;
    let started = tokio::select! {
        started = Broker::start(broker_options) => started,
        () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
    };
    let refused = || format!("cannot start on the database {database}");
    let broker = started.with_context(refused)?;
    telemetry::keep_up(&broker, recorder.clone());
    let http = telemetry::serve_pages(http, recorder, broker.clone());
    let (served, fatal) = until_fatal(&broker, stop.clone(), async {
        listen(&broker, http, stop, |addr| {
            tracing::info!(target: "boot", version = env!("CARGO_PKG_VERSION"), %addr, database, pool, "listening");
            listening(&broker, addr)
        })
        .await
    })
    .await;
    broker.shutdown().await;
    served?;
    tracing::info!(target: "shutdown", "shutdown complete");
    match fatal {
        None => Ok(ExitCode::SUCCESS),
        Some(Fatal::Start(error)) => Err(error).with_context(refused),
        Some(Fatal::Exhausted { .. }) => Ok(ExitCode::from(EXHAUSTED)),
    }
}

/// Serves, while a background task panics at every chance and is restarted without a pause.
pub(crate) async fn provoked(
    task: String,
    loaded: Loaded,
    recorder: Recorder,
    stop: CancellationToken,
) -> anyhow::Result<ExitCode> {
    let mut options = loaded.config.broker;
    options.restarts = RestartLaw { pause: Duration::from_millis(1), ..options.restarts };
    serve(options, loaded.config.http, recorder, stop, |broker, _| {
        anyhow::ensure!(broker.provoke_panic(&task), "there is no background task {task:?}");
        let broker = broker.clone();
        tokio::spawn(async move {
            while broker.is_sound() {
                broker.provoke_panic(&task);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        Ok(())
    })
    .await
}

/// Runs `serving`, and cancels its `stop` when the broker cannot go on.
async fn until_fatal<T>(
    broker: &Broker,
    stop: CancellationToken,
    serving: impl Future<Output = T>,
) -> (T, Option<Fatal>) {
    let mut serving = std::pin::pin!(serving);
    let fatal = tokio::select! {
        served = &mut serving => return (served, None),
        fatal = broker.fatal() => fatal,
    };
    tracing::error!(target: "shutdown", error = %fatal, "the broker cannot go on, draining in-flight requests");
    stop.cancel();
    (serving.await, Some(fatal))
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
