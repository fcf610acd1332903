use std::time::Duration;

use queen_admission::Options as AdmissionOptions;
use queen_pg::PgOptions;
use queen_types::SubscriptionMode;

use crate::spool::BufferOptions;
use crate::supervise::RestartLaw;
use crate::upkeep::UpkeepOptions;

/// How a broker runs. A plain value: nothing reads the environment later.
#[derive(Debug, Clone)]
pub struct BrokerOptions {
    /// The database.
    pub pg: PgOptions,
    /// Identity of this broker among others on the same database; 1..128 bytes.
    pub server_id: String,
    /// Version of the product, recorded with the schema.
    pub version: String,
    /// Create and repair the schema at start. Off: it is taken as it is.
    pub apply_schema: bool,
    /// Roles that are granted use of both schemas at every start.
    pub grant_roles: Vec<String>,
    /// Serve on a schema of another version with a warning instead of refusing to start.
    pub schema_mismatch_warn: bool,
    /// Start although the database is away: calls fail as in an outage until it comes, and then the schema is applied.
    pub degraded_start: bool,
    /// When a background task that ended starts again.
    pub restarts: RestartLaw,
    /// Where a group starts whose first pop names no mode.
    pub default_subscription: SubscriptionMode,
    /// Ceiling of a pop's wait; zero means none.
    pub pop_max_timeout: Duration,
    /// Decoded bytes after which a pop's answer is full; at least one message is delivered.
    pub pop_max_bytes: usize,
    /// zstd level of segments, -7..22.
    pub zstd_level: i32,
    /// Push transactions in flight at the same time, at least 1; what arrives meanwhile shares the next one.
    pub push_bundles: usize,
    /// Bytes of pushes that wait for a transaction; beyond it a push is refused instead of piling up.
    pub fusion_max_bytes: usize,
    /// Where pushes go that the database cannot take; without it they fail.
    pub buffer: Option<BufferOptions>,
    /// Keep in memory which partitions probably have work; off, every pop asks the database.
    pub hotlist: bool,
    /// A pop that does not wait and finds nothing on the hot list walks over the queue's partitions, unless the last walk
    /// was less than as many times of what it took ago (at most `walk_pause_max`): 20 spends a twentieth of the time at
    /// most. This is how late such a pop sees what another broker did.
    pub walk_pause_factor: u32,
    /// Longest time between two walks over a queue that pops find empty: it may have any number of partitions.
    pub walk_pause_max: Duration,
    /// What is known of a queue and group that no pop came to for as long is dropped. `None`: never.
    pub hotlist_idle: Option<Duration>,
    /// Claims of pops in flight at the same time, at least 1; what arrives meanwhile shares the next one.
    pub claim_bundles: usize,
    /// A claim that only hands out leases does not wait for the server's disk; a crash of the server may forget the
    /// leases of its last moments, whose messages are then delivered again.
    pub relaxed_leases: bool,
    /// Remember what was delivered under which lease, so that an ack of all of it needs no search of its messages. Off:
    /// every ack searches.
    pub ack_registry: bool,
    /// Bytes for the leases that are remembered; beyond it the oldest are forgotten, and their acks search.
    pub ack_registry_max_bytes: usize,
    /// Acks of whole batches share commits. Off: each call commits its own.
    pub ack_fusion: bool,
    /// Ack transactions of whole batches in flight at the same time, at least 1; what arrives meanwhile shares the next
    /// one.
    pub ack_flushes: usize,
    /// Memory for the hashes of stored transaction ids, in bytes, so that a push need not search for repeats; 0: none.
    /// Deduplication is exact either way.
    pub dedup_cache_bytes: usize,
    /// How many write transactions may be open at once; its `pool_size` is that of `pg`. Without a floor of the budget it
    /// is two thirds of what the pool has beside the reserve.
    pub admission: AdmissionOptions,
    /// Log every tick of the arbiter.
    pub admission_trace: bool,
    /// How often parked pops are looked after although nothing woke them: the longest that a lost wake can cost, and
    /// how late the expiry of a lease is noticed.
    pub wait_floor: Duration,
    /// How long what is known of a queue (options, registrations) is trusted before it is read again; what another
    /// broker changed is seen this late.
    pub cache_ttl: Duration,
    /// Retention, statistics and metrics.
    pub upkeep: UpkeepOptions,
    /// How often the database is asked what other brokers did that nothing here tells: seeks and deletions of groups. The
    /// longest that a hint from another broker can be late.
    pub reconcile_interval: Duration,
}

impl Default for BrokerOptions {
    fn default() -> Self {
        BrokerOptions {
            pg: PgOptions::default(),
            server_id: "queen".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            apply_schema: true,
            grant_roles: Vec::new(),
            schema_mismatch_warn: false,
            degraded_start: false,
            restarts: RestartLaw::default(),
            default_subscription: SubscriptionMode::New,
            pop_max_timeout: Duration::from_secs(300),
            pop_max_bytes: 8 * 1024 * 1024,
            zstd_level: 3,
            push_bundles: 2,
            fusion_max_bytes: 64 * 1024 * 1024,
            buffer: None,
            hotlist: true,
            walk_pause_factor: 20,
            walk_pause_max: Duration::from_secs(30),
            hotlist_idle: Some(Duration::from_secs(300)),
            claim_bundles: 1,
            relaxed_leases: true,
            ack_registry: true,
            ack_registry_max_bytes: 16 * 1024 * 1024,
            ack_fusion: true,
            ack_flushes: 2,
            dedup_cache_bytes: 64 * 1024 * 1024,
            admission: AdmissionOptions::default(),
            admission_trace: false,
            wait_floor: Duration::from_secs(1),
            cache_ttl: Duration::from_secs(5),
            upkeep: UpkeepOptions::default(),
            reconcile_interval: Duration::from_secs(60),
        }
    }
}
