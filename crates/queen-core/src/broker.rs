use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use queen_fusion::Limits;
use queen_pg::{Pool, PoolStatus};
use queen_schema::ApplyOptions;
use queen_storage::{Storage, StorageOptions};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::StartError;
use crate::ack::AckFusion;
use crate::admission::{self, Admission};
use crate::caches::Caches;
use crate::floor;
use crate::fusion::Fusion;
use crate::health::Health;
use crate::hot::{self, HotLists};
use crate::leases::Leases;
use crate::maintenance::{self, Held, Tally};
use crate::options::BrokerOptions;
use crate::pop::Claims;
use crate::wait::Gates;

/// How long a start waits for another broker that applies the schema.
const SCHEMA_LOCK_WAIT: Duration = Duration::from_secs(600);
/// How long a shutdown waits for each of its tasks.
const TASK_PATIENCE: Duration = Duration::from_secs(2);

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
    pub(crate) caches: Caches,
    pub(crate) gates: Arc<Gates>,
    pub(crate) leases: Leases,
    pub(crate) health: Health,
    pub(crate) held: Held,
    pub(crate) tally: Tally,
    /// Long polls no longer park.
    pub(crate) draining: AtomicBool,
    /// Ends the background tasks.
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

impl Broker {
    /// Connects, applies the schema and starts the background tasks on the ambient runtime.
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
        if options.apply_schema {
            let applied = queen_schema::apply(
                &pool,
                &ApplyOptions {
                    product_version: options.version.clone(),
                    grant_roles: options.grant_roles.clone(),
                    mismatch_warn: options.schema_mismatch_warn,
                    lock_wait: SCHEMA_LOCK_WAIT,
                },
            )
            .await?;
            tracing::info!(
                target: "schema", statements = applied.statements_run, server_version = applied.server_version,
                elapsed_ms = u64::try_from(applied.elapsed.as_millis()).unwrap_or(u64::MAX), "schema applied"
            );
        } else {
            drop(pool.get().await.map_err(StartError::Connect)?);
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
        let inner = Arc::new(Inner {
            admission: Admission::new(&options.admission, limits, options.admission_trace),
            claims: Claims::new(options.claim_bundles),
            hot: HotLists::new(gates.clone()),
            fusion: Fusion::new(
                Limits { bundles: options.push_bundles, ..Limits::default() },
                options.fusion_max_bytes,
            ),
            ack_fusion: AckFusion::new(options.ack_flushes, options.ack_fusion),
            caches: Caches::new(options.cache_ttl),
            gates,
            leases: Leases::new(options.ack_registry_max_bytes, options.ack_registry),
            health: Health::default(),
            held: Held::default(),
            tally: Tally::default(),
            draining: AtomicBool::new(false),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            storage,
            options,
        });
        inner.tasks.spawn(floor::run(
            Arc::downgrade(&inner),
            inner.gates.clone(),
            inner.stop.clone(),
            inner.options.wait_floor,
        ));
        inner.tasks.spawn(hot::timer::run(
            Arc::downgrade(&inner),
            inner.hot.timer.clone(),
            inner.stop.clone(),
        ));
        inner.tasks.spawn(inner.admission.ticks(inner.stop.clone()));
        inner.tasks.spawn(maintenance::marks(
            Arc::downgrade(&inner),
            inner.storage.clone(),
            inner.stop.clone(),
        ));
        inner.tasks.spawn(maintenance::collect(Arc::downgrade(&inner), inner.stop.clone()));
        inner.tasks.spawn(maintenance::run(Arc::downgrade(&inner), inner.stop.clone()));
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

    /// Whether the schema of the database is known to be in place.
    pub fn schema_applied(&self) -> bool {
        // A start without it fails; a degraded start, where this will tell the difference, does not exist yet.
        true
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
        self.inner.admission.close();
        self.inner.storage.pool().close();
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
