//! The recorder of this process, and the gauges that are read off the broker when somebody scrapes.

use std::time::Duration;

use queen_core::Broker;
use queen_http::{HttpOptions, Render};
use queen_telemetry::{BuildInfo, DatabaseNumbers, Recorder};

/// Cadence at which raw histogram observations are folded, so that a broker that nobody scrapes does not grow.
const UPKEEP: Duration = Duration::from_secs(5);

/// Installs the recorder of this process.
pub(crate) fn install() -> anyhow::Result<Recorder> {
    let build = BuildInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        revision: option_env!("QUEEN_REVISION").unwrap_or("unknown").to_owned(),
        rustc: option_env!("QUEEN_RUSTC").unwrap_or("unknown").to_owned(),
    };
    Ok(Recorder::install(&build)?)
}

/// Folds observations for as long as the process lives.
pub(crate) async fn upkeep(recorder: Recorder) {
    let mut tick = tokio::time::interval(UPKEEP);
    loop {
        tick.tick().await;
        recorder.upkeep();
    }
}

/// Gives the metrics routes their pages.
pub(crate) fn serve_pages(http: HttpOptions, recorder: Recorder, broker: Broker) -> HttpOptions {
    let (page_recorder, page_broker) = (recorder.clone(), broker.clone());
    HttpOptions {
        prometheus: Some(Render::new(move || {
            observe(&page_broker);
            page_recorder.render()
        })),
        metrics_json: Some(Render::new(move || {
            let pool = broker.pool_status();
            recorder.json(DatabaseNumbers { pool_size: pool.max, idle: pool.idle, waiting: pool.waiting })
        })),
        ..http
    }
}

/// Sets the gauges whose value is a look at the broker.
fn observe(broker: &Broker) {
    let pool = broker.pool_status();
    metrics::gauge!("queen_db_pool_size").set(pool.max as f64);
    metrics::gauge!("queen_db_pool_idle").set(pool.idle as f64);
    metrics::gauge!("queen_db_pool_active").set(pool.active as f64);
    metrics::gauge!("queen_db_pool_waiting").set(pool.waiting as f64);
}
