//! From merged values to the options of each crate.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use queen_core::{
    AdmissionOptions, BrokerOptions, BufferOptions, FsyncMode, OnConflict, PerLane, SpoolOptions,
};
use queen_http::HttpOptions;
use queen_pg::{PgOptions, TlsMode};
use queen_telemetry::LogOptions;
use queen_types::SubscriptionMode;
use serde::Deserialize;

use crate::merge::Merged;

/// What a broker process needs to start.
#[derive(Debug, Clone)]
pub struct Config {
    /// The broker itself, with its database.
    pub broker: BrokerOptions,
    /// Its HTTP edge.
    pub http: HttpOptions,
    /// Its log.
    pub log: LogOptions,
}

#[derive(Deserialize)]
struct Server {
    port: u16,
    bind_addr: String,
    max_body_bytes: u64,
    id: String,
    shutdown_timeout_ms: u64,
    drain_delay_ms: u64,
    boot_without_db: bool,
}

#[derive(Deserialize)]
struct Postgres {
    host: String,
    port: u16,
    user: String,
    password: String,
    database: String,
    pool_size: usize,
    statement_timeout_ms: u64,
    pool_wait_ms: u64,
    connect_timeout_ms: u64,
    apply_schema: bool,
    schema_mismatch: String,
    grant_roles: Vec<String>,
    tls: Tls,
}

#[derive(Deserialize)]
struct Tls {
    enabled: bool,
    verify: bool,
    root_cert: Option<String>,
}

#[derive(Deserialize)]
struct Pop {
    default_timeout_ms: u64,
    max_timeout_ms: u64,
    default_subscription_mode: String,
    fusion: PopFusion,
    lease_async_commit: bool,
}

#[derive(Deserialize)]
struct Spool {
    dir: String,
    flush_interval_ms: u64,
    max_batch: usize,
    events_per_file: u64,
    max_bytes: u64,
    min_free_bytes: u64,
    fsync: String,
    fsync_ms: u64,
    required: bool,
    on_conflict: String,
    ordered: bool,
    delete_unmovable: bool,
}

#[derive(Deserialize)]
struct Mesh {
    reconcile_interval_ms: u64,
}

#[derive(Deserialize)]
struct PushFusion {
    max_bytes: usize,
}

#[derive(Deserialize)]
struct Push {
    zstd_level: i32,
    fusion: PushFusion,
}

#[derive(Deserialize)]
struct Hotlist {
    enabled: bool,
    reseed_ms: u64,
    idle_sweep_ms: u64,
}

#[derive(Deserialize)]
struct PopFusion {
    concurrency: usize,
}

#[derive(Deserialize)]
struct Ack {
    registry: AckRegistry,
    fusion: AckFusion,
}

#[derive(Deserialize)]
struct AckRegistry {
    enabled: bool,
    max_mb: usize,
}

#[derive(Deserialize)]
struct AckFusion {
    enabled: bool,
}

#[derive(Deserialize)]
struct Dedup {
    cache_enabled: bool,
    cache_mb: usize,
}

#[derive(Deserialize)]
struct Admission {
    min: usize,
    init: usize,
    max: usize,
    pool_reserve: usize,
    share: Share,
    tick_ms: u64,
    train_gap_us: u64,
    nosync_budget: usize,
    wait_ms: u64,
}

#[derive(Deserialize)]
struct Share {
    push: f64,
    pop: f64,
    ack: f64,
    maint: f64,
}

#[derive(Deserialize)]
struct Log {
    filter: String,
    json: bool,
}

/// Why merged values do not make a configuration.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// The listener's host does not resolve.
    Bind(String),
    /// The registry and the structs of this file disagree.
    Shape(Box<figment::Error>),
}

impl From<Box<figment::Error>> for Unusable {
    fn from(error: Box<figment::Error>) -> Self {
        Unusable::Shape(error)
    }
}

impl Config {
    pub(crate) fn of(merged: &Merged) -> Result<Config, Unusable> {
        let server: Server = merged.section("server")?;
        let postgres: Postgres = merged.section("postgres")?;
        let pop: Pop = merged.section("pop")?;
        let push: Push = merged.section("push")?;
        let ack: Ack = merged.section("ack")?;
        let dedup: Dedup = merged.section("dedup")?;
        let log: Log = merged.section("log")?;
        let hotlist: Hotlist = merged.section("hotlist")?;
        let pop_max_timeout = Duration::from_millis(pop.max_timeout_ms);

        let http = HttpOptions {
            bind: resolve(&server.bind_addr, server.port)?,
            max_body_bytes: usize::try_from(server.max_body_bytes).unwrap_or(usize::MAX),
            pop_default_timeout: Duration::from_millis(pop.default_timeout_ms),
            pop_max_timeout,
            drain_delay: Duration::from_millis(server.drain_delay_ms),
            shutdown_timeout: Duration::from_millis(server.shutdown_timeout_ms),
            ..HttpOptions::default()
        };
        let broker = BrokerOptions {
            server_id: server.id.clone(),
            apply_schema: postgres.apply_schema,
            degraded_start: server.boot_without_db,
            grant_roles: postgres.grant_roles.clone(),
            schema_mismatch_warn: postgres.schema_mismatch == "warn",
            default_subscription: SubscriptionMode::parse(&pop.default_subscription_mode)
                .unwrap_or(SubscriptionMode::New),
            pop_max_timeout,
            zstd_level: push.zstd_level,
            reconcile_interval: Duration::from_millis(merged.section::<Mesh>("mesh")?.reconcile_interval_ms),
            fusion_max_bytes: push.fusion.max_bytes,
            buffer: Some(merged.section::<Spool>("spool")?.into_options(merged)),
            hotlist: hotlist.enabled,
            walk_pause_max: Duration::from_millis(hotlist.reseed_ms),
            hotlist_idle: Some(Duration::from_millis(hotlist.idle_sweep_ms)).filter(|idle| !idle.is_zero()),
            claim_bundles: pop.fusion.concurrency,
            relaxed_leases: pop.lease_async_commit,
            ack_registry: ack.registry.enabled,
            ack_registry_max_bytes: ack.registry.max_mb.saturating_mul(1024 * 1024),
            ack_fusion: ack.fusion.enabled,
            dedup_cache_bytes: if dedup.cache_enabled {
                dedup.cache_mb.saturating_mul(1024 * 1024)
            } else {
                0
            },
            admission: merged.section::<Admission>("admission")?.into_options(merged, postgres.pool_size),
            admission_trace: merged.boolean("QUEEN_ADMISSION_TRACE"),
            upkeep: crate::jobs::options(merged)?,
            pg: postgres.into_options(&server.id),
            ..BrokerOptions::default()
        };
        Ok(Config { broker, http, log: LogOptions { filter: log.filter, json: log.json } })
    }
}

impl Postgres {
    fn into_options(self, server_id: &str) -> PgOptions {
        PgOptions {
            host: self.host,
            port: self.port,
            user: self.user,
            password: Some(self.password).filter(|password| !password.is_empty()),
            database: self.database,
            tls: self.tls.mode(),
            pool_size: self.pool_size,
            statement_timeout: Duration::from_millis(self.statement_timeout_ms),
            connect_timeout: Duration::from_millis(self.connect_timeout_ms),
            pool_wait: Duration::from_millis(self.pool_wait_ms),
            application_name: format!("queen/{server_id}"),
        }
    }
}

impl Spool {
    fn into_options(self, merged: &Merged) -> BufferOptions {
        BufferOptions {
            files: SpoolOptions {
                events_per_file: self.events_per_file,
                max_bytes: self.max_bytes,
                min_free_bytes: self.min_free_bytes,
                fsync: match self.fsync.as_str() {
                    "always" => FsyncMode::Always,
                    "never" => FsyncMode::Never,
                    _ => FsyncMode::Batch,
                },
                fsync_gap: Duration::from_millis(self.fsync_ms),
                on_conflict: if self.on_conflict == "subdir" {
                    OnConflict::Subdir
                } else {
                    OnConflict::Refuse
                },
                delete_unmovable: self.delete_unmovable,
                ..SpoolOptions::at(self.dir)
            },
            // Whoever named a directory wants no other.
            fallback: (!merged.is_given("FILE_BUFFER_DIR"))
                .then(|| std::env::temp_dir().join("queen-buffers")),
            required: self.required,
            flush: Duration::from_millis(self.flush_interval_ms),
            batch: self.max_batch,
            ordered: self.ordered,
        }
    }
}

impl Admission {
    /// What nobody set is left to the broker, which knows what follows from the pool.
    fn into_options(self, merged: &Merged, pool_size: usize) -> AdmissionOptions {
        let given = |name: &str, value: usize| merged.is_given(name).then_some(value);
        AdmissionOptions {
            pool_size,
            pool_reserve: given("QUEEN_ADMISSION_POOL_RESERVE", self.pool_reserve),
            min: given("QUEEN_ADMISSION_MIN", self.min),
            init: given("QUEEN_ADMISSION_INIT", self.init),
            max: self.max,
            train_gap: Duration::from_micros(self.train_gap_us),
            tick: Duration::from_millis(self.tick_ms),
            shares: PerLane {
                push: self.share.push,
                pop: self.share.pop,
                ack: self.share.ack,
                maint: self.share.maint,
            },
            nosync_budget: self.nosync_budget,
            wait: Duration::from_millis(self.wait_ms),
            ..AdmissionOptions::default()
        }
    }
}

impl Tls {
    fn mode(self) -> TlsMode {
        match (self.enabled, self.root_cert, self.verify) {
            (false, _, _) => TlsMode::Plaintext,
            (true, Some(pem), _) => TlsMode::SuppliedCa(pem),
            (true, None, true) => TlsMode::PublicRoots,
            (true, None, false) => TlsMode::AcceptAny,
        }
    }
}

/// The first address of the listener's host; a look-up only when it is a name.
fn resolve(host: &str, port: u16) -> Result<SocketAddr, Unusable> {
    let bare = host.trim_matches(['[', ']']);
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, port));
    }
    let mut found = (bare, port).to_socket_addrs().map_err(|error| Unusable::Bind(error.to_string()))?;
    found.next().ok_or_else(|| Unusable::Bind("no address".to_owned()))
}
