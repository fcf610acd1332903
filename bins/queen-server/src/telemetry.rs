//! The recorder of this process, and the gauges that are read off the broker when somebody scrapes.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use queen_core::Broker;
use queen_http::{HttpOptions, Render};
use queen_telemetry::{BuildInfo, DatabaseNumbers, Recorder};

/// Cadence at which raw histogram observations are folded, so that a broker that nobody scrapes does not grow.
const UPKEEP: Duration = Duration::from_secs(5);

/// Most queues with a series of their own. Anybody can park on any name, and a series is never given back.
const QUEUES_MAX: usize = 512;

/// Installs the recorder of this process.
pub(crate) fn install() -> anyhow::Result<Recorder> {
    let build = BuildInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        revision: option_env!("QUEEN_REVISION").unwrap_or("unknown").to_owned(),
        rustc: option_env!("QUEEN_RUSTC").unwrap_or("unknown").to_owned(),
    };
    Ok(Recorder::install(&build)?)
}

/// Folds observations for as long as the broker lives.
pub(crate) fn keep_up(broker: &Broker, recorder: Recorder) {
    broker.supervise("metrics-upkeep", move |beat| {
        let recorder = recorder.clone();
        async move {
            let mut tick = tokio::time::interval(UPKEEP);
            loop {
                beat.within(UPKEEP);
                tick.tick().await;
                recorder.upkeep();
            }
        }
    });
}

/// Gives the metrics routes their pages.
pub(crate) fn serve_pages(http: HttpOptions, recorder: Recorder, broker: Broker) -> HttpOptions {
    let (page_recorder, page_broker) = (recorder.clone(), broker.clone());
    let parked = Parked::default();
    HttpOptions {
        prometheus: Some(Render::new(move || {
            observe_pool(&page_broker);
            observe_admission(&page_broker);
            observe_spool(&page_broker);
            page_broker.watch_tasks();
            parked.observe(page_broker.parked());
            page_recorder.render()
        })),
        metrics_json: Some(Render::new(move || {
            let pool = broker.pool_status();
            recorder.json(DatabaseNumbers { pool_size: pool.max, idle: pool.idle, waiting: pool.waiting })
        })),
        ..http
    }
}

/// Sets the gauges of the connection pool.
fn observe_pool(broker: &Broker) {
    let pool = broker.pool_status();
    metrics::gauge!("queen_db_pool_size").set(pool.max as f64);
    metrics::gauge!("queen_db_pool_idle").set(pool.idle as f64);
    metrics::gauge!("queen_db_pool_active").set(pool.active as f64);
    metrics::gauge!("queen_db_pool_waiting").set(pool.waiting as f64);
}

/// Sets the gauges of the arbiter of write transactions.
fn observe_admission(broker: &Broker) {
    let shown = broker.admission();
    metrics::gauge!("queen_admission_budget").set(shown.budget.floor());
    metrics::gauge!("queen_admission_trains_per_s").set(shown.trains.trains_per_s);
    metrics::gauge!("queen_admission_txn_per_train").set(shown.trains.txn_per_train);
    metrics::gauge!("queen_admission_cycle_ms")
        .set(shown.trains.cycle.unwrap_or_default().as_secs_f64() * 1e3);
    metrics::gauge!("queen_admission_oldest_seconds").set(shown.oldest.as_secs_f64());
    metrics::gauge!("queen_admission_mode").set(shown.mode_value());
    for (lane, at) in shown.lanes.iter() {
        metrics::gauge!("queen_admission_inflight", "lane" => lane.as_str()).set(at.in_flight as f64);
        metrics::gauge!("queen_admission_waiting", "lane" => lane.as_str()).set(at.waiting as f64);
        metrics::gauge!("queen_admission_cap", "lane" => lane.as_str()).set(at.cap as f64);
    }
}

/// Sets the gauges of the spool and of the maintenance modes.
fn observe_spool(broker: &Broker) {
    let status = broker.buffered();
    let modes = broker.maintenance();
    let flag = |on: bool| if on { 1.0 } else { 0.0 };
    let age = status.oldest.map_or(0.0, |oldest| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as f64;
        ((now - oldest.0 as f64) / 1e6).max(0.0)
    });
    metrics::gauge!("queen_file_buffer_pending").set(status.pending as f64);
    metrics::gauge!("queen_file_buffer_failed").set(status.refused as f64);
    metrics::gauge!("queen_file_buffer_db_healthy").set(flag(broker.is_database_hint_good()));
    metrics::gauge!("queen_maintenance_mode_enabled").set(flag(modes.push));
    metrics::gauge!("queen_maintenance_mode", "kind" => "push").set(flag(modes.push));
    metrics::gauge!("queen_maintenance_mode", "kind" => "pop").set(flag(modes.pop));
    metrics::gauge!("queen_spool_bytes").set(status.bytes as f64);
    let active = status.pending_files - status.ready_files;
    metrics::gauge!("queen_spool_files", "state" => "active").set(active as f64);
    metrics::gauge!("queen_spool_files", "state" => "ready").set(status.ready_files as f64);
    metrics::gauge!("queen_spool_oldest_event_age_seconds").set(age);
    metrics::gauge!("queen_spool_disk_free_bytes").set(status.disk_free as f64);
    metrics::gauge!("queen_spool_breaker_open").set(flag(broker.is_replay_pausing()));
    metrics::gauge!("queen_spool_writable").set(flag(status.writable));
    metrics::gauge!("queen_spool_quarantine_events").set(status.quarantined as f64);
    metrics::gauge!("queen_spool_quarantine_bytes").set(status.quarantine_bytes as f64);
}

/// The gauge of parked pops, and the queues that have one: a queue that nobody waits for any more has to be told so.
#[derive(Default)]
struct Parked {
    queues: Mutex<HashSet<String>>,
}

impl Parked {
    fn observe(&self, parked: Vec<(String, usize)>) {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        for queue in queues.iter().filter(|queue| !parked.iter().any(|(name, _)| name == *queue)) {
            gauge(queue).set(0.0);
        }
        for (queue, pops) in parked {
            if queues.contains(&queue) || queues.len() < QUEUES_MAX {
                gauge(&queue).set(pops as f64);
                queues.insert(queue);
            }
        }
    }
}

fn gauge(queue: &str) -> metrics::Gauge {
    metrics::gauge!("queen_parked_long_polls", "queue" => queue.to_owned())
}
