use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use queen_fusion::Limits;
use queen_pg::{Pool, PoolStatus};
use queen_storage::{Storage, StorageOptions};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::StartError;
use crate::ack::AckFusion;
use crate::admission::{self, Admission};
use crate::boot::{self, Found, SchemaGate};
use crate::caches::Caches;
use crate::floor;
use crate::fusion::Fusion;
use crate::health::Health;
use crate::hot::{self, HotLists};
use crate::leases::Leases;
use crate::modes::{self, Maintenance};
use crate::options::BrokerOptions;
use crate::pop::Claims;
use crate::reconcile;
use crate::spool::{self, Buffer};
use crate::supervise::{Supervisor, count_task_panic};
use crate::upkeep::{self, Held, Summaries, Tally};
use crate::wait::Gates;

/// How long a start waits for what a former life had spooled.
const REPLAY_PATIENCE: Duration = Duration::from_secs(5);
/// How long a shutdown waits for each of its tasks.
const TASK_PATIENCE: Duration = Duration::from_secs(2);

/// How long a shutdown waits for the database to hear that background tasks are left to others.
const FAREWELL: Duration = Duration::from_secs(1);

/// A running broker. Cheap to clone; all clones are the same broker.
#[derive(Clone)]
pub struct Broker {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) options: BrokerOptions,
    pub(crate) storage: Storage,
    pub(crate) admission: Admission,
    pub(crate) fusion: Fusion,
    pub(crate) claims: Claims,
    pub(crate) hot: HotLists,
    pub(crate) ack_fusion: AckFusion,
    pub(crate) caches: Arc<Caches>,
    pub(crate) gates: Arc<Gates>,
    pub(crate) leases: Leases,
    pub(crate) health: Health,
    pub(crate) held: Held,
    pub(crate) tally: Tally,
    pub(crate) summaries: Summaries,
    pub(crate) buffer: Arc<Buffer>,
    pub(crate) modes: Arc<Maintenance>,
    /// Long polls no longer park.
    pub(crate) draining: AtomicBool,
    pub(crate) schema: Arc<SchemaGate>,
    /// Ends the background tasks.
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: TaskTracker,
    /// Keeps the long-lived ones of them running.
    pub(crate) supervisor: Supervisor,
}

impl Broker {
    /// Connects, applies the schema and starts the background tasks on the ambient runtime.
    ///
    /// With `degraded_start` a database that is away, or an apply that takes longer than 5 s, does not fail the start:
    /// the apply is tried until it succeeds. Watch [`Broker::fatal`] then.
    ///
    /// # Errors
    /// See [`StartError`]; nothing is left running then.
    ///
    /// # Cancel safety
    /// A dropped start leaves no task behind; a schema apply that it began is completed by the next start.
    pub async fn start(mut options: BrokerOptions) -> Result<Broker, StartError> {
        check(&options)?;
        options.admission.pool_size = options.pg.pool_size;
        let (limits, warnings) = admission::limits(&options.admission);
        for warning in warnings {
            tracing::warn!(target: "admission", "{warning}");
        }
        options.pg.pool_size = limits.pool_size;
        let pool = Pool::new(options.pg.clone()).map_err(|error| StartError::Config(error.to_string()))?;
        let buffer = Buffer::open(options.buffer.clone(), &options.server_id).await?;
        // Without a database only the spool can take anything; who wants none has said so.
        options.degraded_start &= options.buffer.is_none() || buffer.is_writable();
        let found = boot::first(&pool, &options).await?;
        if matches!(found, Found::Nothing(_)) {
            boot::hold(&pool);
        }
        let storage = Storage::new(
            pool,
            StorageOptions {
                zstd_level: options.zstd_level,
                relaxed_leases: options.relaxed_leases,
                dedup_cache_bytes: options.dedup_cache_bytes,
                ..StorageOptions::default()
            },
        );
        let gates: Arc<Gates> = Arc::default();
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let inner = Arc::new(Inner {
            admission: Admission::new(&options.admission, limits, options.admission_trace),
            claims: Claims::new(options.claim_bundles),
            hot: HotLists::new(gates.clone()),
            fusion: Fusion::new(
                Limits { bundles: options.push_bundles, ..Limits::default() },
                options.fusion_max_bytes,
            ),
            ack_fusion: AckFusion::new(options.ack_flushes, options.ack_fusion),
            caches: Arc::new(Caches::new(options.cache_ttl)),
            gates,
            leases: Leases::new(options.ack_registry_max_bytes, options.ack_registry),
            health: Health::default(),
            held: Held::default(),
            tally: Tally::default(),
            summaries: Summaries::default(),
            buffer: Arc::new(buffer),
            modes: Arc::new(Maintenance::new()),
            draining: AtomicBool::new(false),
            schema: Arc::new(SchemaGate::new(matches!(found, Found::Schema))),
            supervisor: Supervisor::new(options.restarts, stop.clone(), tasks.clone()),
            stop,
            tasks,
            storage,
            options,
        });
        if let Found::Nothing(mut under_way) = found {
            let (weak, gate) = (Arc::downgrade(&inner), inner.schema.clone());
            inner.supervisor.run_to_end("schema", move |beat| {
                boot::bring_up(weak.clone(), gate.clone(), under_way.take(), beat)
            });
        }
        if inner.schema.is_applied()
            && let Err(error) = inner.adopt_flags().await
        {
            tracing::warn!(target: "boot", %error, "the maintenance modes could not be read");
        }
        start_tasks(&inner);
        if inner.schema.is_applied() && !inner.modes.push() {
            inner.buffer.settled(REPLAY_PATIENCE).await;
        }
        Ok(Broker { inner })
    }

    /// Whether the broker is on its way out.
    pub fn is_draining(&self) -> bool {
        self.inner.draining.load(Ordering::Relaxed)
    }

    /// Ends every parked pop with an empty answer, and lets no new one park. Everything else goes on.
    pub fn drain(&self) {
        self.inner.draining.store(true, Ordering::Relaxed);
        self.inner.gates.wake_everybody();
    }

    /// What this broker calls itself.
    pub fn server_id(&self) -> &str {
        &self.inner.options.server_id
    }

    /// Numbers of the connection pool.
    pub fn pool_status(&self) -> PoolStatus {
        self.inner.storage.pool().status()
    }

    /// Parked pops by queue; discovery pops stand under the empty name.
    pub fn parked(&self) -> Vec<(String, usize)> {
        self.inner.gates.parked()
    }

    /// Drains, stops every task and closes the pool. Safe to call twice.
    pub async fn shutdown(&self) {
        self.drain();
        self.inner.stop.cancel();
        self.inner.tasks.close();
        if tokio::time::timeout(TASK_PATIENCE, self.inner.tasks.wait()).await.is_err() {
            tracing::warn!(target: "shutdown", "a background task did not end in time");
        }
        let upkeep = &self.inner.options.upkeep;
        if upkeep.retention || upkeep.stats {
            // Another broker goes on at once. If this cannot be said, the leases end by themselves.
            let given_up = self.inner.storage.give_up_tasks(&self.inner.options.server_id);
            if !matches!(tokio::time::timeout(FAREWELL, given_up).await, Ok(Ok(()))) {
                tracing::debug!(target: "shutdown", "leases of background tasks were left to end");
            }
        }
        self.inner.buffer.close().await;
        self.inner.admission.close();
        self.inner.storage.pool().close();
    }
}

/// Starts the tasks that run as long as the broker.
fn start_tasks(inner: &Arc<Inner>) {
    let weak = Arc::downgrade(inner);
    let (broker, gates, every) = (weak.clone(), inner.gates.clone(), inner.options.wait_floor);
    inner.supervisor.run("floor", move |beat| floor::run(broker.clone(), gates.clone(), every, beat));
    let (broker, every) = (weak.clone(), inner.options.reconcile_interval);
    let mut again = false;
    inner.supervisor.run("reconcile", move |beat| {
        reconcile::run(broker.clone(), every, std::mem::replace(&mut again, true), beat)
    });
    let (broker, timer) = (weak, inner.hot.timer.clone());
    inner.supervisor.run("hot-list", move |beat| hot::timer::run(broker.clone(), timer.clone(), beat));
    let ticks = inner.admission.ticks();
    inner.supervisor.run("admission", ticks);
    let options = &inner.options.upkeep;
    let (broker, storage) = (Arc::downgrade(inner), inner.storage.clone());
    inner.supervisor.run("marks", move |beat| upkeep::marks(broker.clone(), storage.clone(), beat));
    if let Some(every) = options.metrics_flush {
        let broker = Arc::downgrade(inner);
        inner.supervisor.run("metrics", move |beat| upkeep::collect(broker.clone(), every, beat));
    }
    if options.retention || options.stats {
        let broker = Arc::downgrade(inner);
        inner.supervisor.run("upkeep", move |beat| upkeep::run(broker.clone(), beat));
    }
    let (broker, every) = (Arc::downgrade(inner), inner.options.reconcile_interval);
    inner.supervisor.run("modes", move |beat| modes::run(broker.clone(), every, beat));
    if inner.buffer.exists() {
        let broker = Arc::downgrade(inner);
        inner.supervisor.run("replay", move |beat| spool::run(broker.clone(), beat));
    }
}

impl Inner {
    /// Runs a piece of work apart from whoever asked for it. What it holds is dropped when it panics, which tells those
    /// who wait for it; here the panic is only counted.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(async {
            if AssertUnwindSafe(work).catch_unwind().await.is_err() {
                count_task_panic();
            }
        });
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop.cancel();
        self.admission.close();
        self.storage.pool().close();
    }
}

fn check(options: &BrokerOptions) -> Result<(), StartError> {
    let given = options.server_id.len();
    if given == 0 || given > 128 || options.server_id.chars().any(char::is_control) {
        return Err(StartError::Config(format!(
            "server_id must be 1..128 bytes without control characters, got {given} bytes"
        )));
    }
    if options.wait_floor.is_zero() {
        return Err(StartError::Config("wait_floor must be longer than zero".to_owned()));
    }
    Ok(())
}
