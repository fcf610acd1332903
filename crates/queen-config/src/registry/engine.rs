use super::variable::{
    Alias, AliasKind, Variable, at_least, boolean, choice, clamped, float, float_at_least, int, optional,
};

/// The week that bounds the look-back of a reseed.
const WEEK_MS: i64 = 604_800_000;

const ON_OFF: &[(&str, &[&str])] =
    &[("on", &["true", "1", "yes"]), ("shadow", &[]), ("off", &["false", "0", "no"])];

const MODES: &[(&str, &[&str])] = &[("new", &["new-only", "new_only", "newonly"]), ("all", &[])];

pub(super) const VARIABLES: &[Variable] = &[
    int("QUEEN_V2_ZSTD_LEVEL", "push.zstd_level", 3, -7, 22)
        .live()
        .doc("Compression level of segments: higher costs CPU at a push and saves WAL."),
    at_least("QUEEN_V2_FUSION_SHARDS", "push.fusion.shards", 8, 1)
        .doc("Shards that collect pushes for one commit."),
    at_least("QUEEN_V2_FUSION_HOLD_MS", "push.fusion.hold_ms", 3, 1).doc("Back-stop sweep of those shards."),
    int("QUEEN_FUSION_MAX_BYTES", "push.fusion.max_bytes", 67_108_864, 1, i64::MAX)
        .live().doc("Bytes that may wait for a commit; above it pushes are spooled."),
    boolean("QUEEN_DEDUP_CACHE", "dedup.cache_enabled", true).live().doc(
        "Remember the hashes of the deduplication window, so that a push need not search for repeats. \
         Deduplication is exact either way.",
    ),
    at_least("QUEEN_DEDUP_CACHE_MB", "dedup.cache_mb", 64, 1)
        .live()
        .doc("Cap of that memory: about 5 bytes a message in the window, and 120 a partition."),
    boolean("QUEEN_ACK_REGISTRY", "ack.registry.enabled", true).live().doc(
        "Remember what was delivered under which lease, so that an ack of a whole batch needs no search.",
    ),
    at_least("QUEEN_ACK_REGISTRY_MB", "ack.registry.max_mb", 16, 1)
        .live()
        .doc("Cap of that registry, about 500 bytes a lease; beyond it the oldest leases are forgotten."),
    boolean("QUEEN_ACK_FUSION", "ack.fusion.enabled", true)
        .live()
        .doc("Acks of whole batches share commits; off, each call commits its own."),
    at_least("QUEEN_ACK_FUSION_SHARDS", "ack.fusion.shards", 8, 1)
        .derived("value of `QUEEN_V2_FUSION_SHARDS`")
        .like("8")
        .without_effect()
        .doc("Acks wait in one line, which no shard divides."),
    at_least("QUEEN_ACK_FUSION_HOLD_MS", "ack.fusion.hold_ms", 3, 1)
        .without_effect()
        .doc("No ack is held back to gather company."),
    at_least("DEFAULT_TIMEOUT", "pop.default_timeout_ms", 30_000, 1)
        .or(&[Alias { name: "POP_DEFAULT_TIMEOUT_MS", kind: AliasKind::Yields }])
        .live()
        .doc("How long a long poll waits that names no `timeout`."),
    at_least("QUEEN_POP_MAX_TIMEOUT_MS", "pop.max_timeout_ms", 300_000, 0)
        .live()
        .doc("Ceiling of the `timeout` that a client asks for, 0 for none."),
    choice("DEFAULT_SUBSCRIPTION_MODE", "pop.default_subscription_mode", "new", MODES).live().doc(
        "Where a group begins whose first pop names no mode. Pops without a group always take everything.",
    ),
    at_least("POP_WAIT_INITIAL_INTERVAL_MS", "pop.wait.initial_ms", 100, 1)
        .without_effect()
        .doc("A parked pop is woken by events and does not poll."),
    at_least("POP_WAIT_BACKOFF_THRESHOLD", "pop.wait.backoff_after", 3, 0)
        .without_effect()
        .doc("A parked pop is woken by events and does not poll."),
    float("POP_WAIT_BACKOFF_MULTIPLIER", "pop.wait.multiplier", 2.0, 1.0, 10.0)
        .without_effect()
        .doc("A parked pop is woken by events and does not poll."),
    at_least("POP_WAIT_MAX_INTERVAL_MS", "pop.wait.max_ms", 1_000, 1)
        .without_effect()
        .doc("A parked pop is woken by events and does not poll."),
    boolean("QUEEN_POP_PENDING_GATE", "pop.pending_gate", true)
        .doc("Probe cheaply before a parked pop claims again."),
    boolean("QUEEN_POP_FUSION", "pop.fusion.enabled", false).doc("Many claims in one commit."),
    at_least("QUEEN_POP_FUSION_SHARDS", "pop.fusion.shards", 4, 1).doc("Shards that collect claims."),
    at_least("QUEEN_POP_FUSION_HOLD_MS", "pop.fusion.hold_ms", 3, 1).doc("Back-stop sweep of those shards."),
    at_least("QUEEN_POP_FUSION_MAX_JOBS", "pop.fusion.max_jobs", 16, 1).doc("Claims in one commit."),
    at_least("QUEEN_POP_FUSION_CONCURRENCY", "pop.fusion.concurrency", 1, 1)
        .live()
        .doc("Claims in flight; what arrives meanwhile shares the next."),
    choice("QUEEN_POP_AUTOPILOT", "pop.autopilot.mode", "on", ON_OFF)
        .doc("Batch sizing for requests with `autopilot=true`: on, shadow, off, or a boolean."),
    int("QUEEN_POP_AUTOPILOT_BATCH", "pop.autopilot.batch", 100, 1, 10_000).doc("Starting batch."),
    float_at_least("QUEEN_POP_AUTOPILOT_TARGET_AGE_MS", "pop.autopilot.target_age_ms", 25.0, 1.0)
        .doc("Age of messages that it steers to."),
    at_least("QUEEN_POP_AUTOPILOT_DWELL_MS", "pop.autopilot.dwell_ms", 500, 1)
        .doc("Shortest time between two steps."),
    at_least("QUEEN_POP_AUTOPILOT_DWELL_POPS", "pop.autopilot.dwell_pops", 16, 1)
        .doc("Fewest pops between two steps."),
    int("QUEEN_POP_AUTOPILOT_BURST_CAP", "pop.autopilot.burst_cap", 0, 0, 64)
        .doc("Cap of a burst, 0 for none."),
    at_least("QUEEN_POP_AUTOPILOT_MAX_LANES", "pop.autopilot.max_lanes", 50_000, 0).doc("Lanes remembered."),
    boolean("QUEEN_LEASE_ASYNC_COMMIT", "pop.lease_async_commit", true).live().doc(
        "A claim that only leases does not wait for the disk; a crash of PostgreSQL may forget its last leases.",
    ),
    boolean("QUEEN_HOTLIST", "hotlist.enabled", true)
        .live()
        .doc("Remember which partitions probably have work; off, each queue-level pop looks in PostgreSQL."),
    at_least("QUEEN_HOTLIST_SHARDS", "hotlist.shards", 8, 1)
        .derived("value of `QUEEN_V2_FUSION_SHARDS`")
        .like("8")
        .without_effect()
        .doc("Each queue has a lock of its own."),
    at_least("QUEEN_HOTLIST_WINDOW_BATCH", "hotlist.window_batch", 100, 1)
        .doc("Messages that release a partition withheld by `windowBuffer` early."),
    at_least("QUEEN_HOTLIST_RESEED_MS", "hotlist.reseed_ms", 30_000, 1)
        .live()
        .doc("Longest time between two walks over a queue that pops find empty: the floor for missed marks."),
    at_least("QUEEN_HOTLIST_RESEED_FULL_MS", "hotlist.reseed_full_ms", 300_000, 0)
        .without_effect()
        .doc("Every walk is over everything."),
    clamped("QUEEN_HOTLIST_RESEED_WINDOW_MS", "hotlist.reseed_window_ms", 0, 0, WEEK_MS)
        .like("120000")
        .without_effect()
        .doc("Every walk is over everything."),
    at_least("QUEEN_HOTLIST_IDLE_SWEEP_MS", "hotlist.idle_sweep_ms", 300_000, 0)
        .live()
        .doc("Idle time after which what is known of a queue and group is dropped, 0 for never."),
    at_least("QUEEN_HOTLIST_UNSERVED_TRIM_MS", "hotlist.unserved_trim_ms", 30_000, 0)
        .without_effect()
        .doc("Groups that no pop comes to are dropped with `QUEEN_HOTLIST_IDLE_SWEEP_MS`."),
    at_least("QUEEN_V2_FUSION_FRAMES", "", 500, 1).without_effect().doc("Segments are bounded otherwise."),
    at_least("QUEEN_V2_FUSION_MAX_INFLIGHT", "", 8, 1).without_effect().doc("Internal to the public broker."),
    at_least("QUEEN_V2_BUNDLE_MAX", "", 16, 1).without_effect().doc("Internal to the public broker."),
    at_least("QUEEN_V2_FUSION_MIN_FRAMES", "", 0, 0).without_effect().doc("Internal to the public broker."),
    at_least("QUEEN_V2_FUSION_MIN_WAIT_MS", "", 2, 0).without_effect().doc("Internal to the public broker."),
    boolean("QUEEN_V2_BUNDLE_LOG", "", false).without_effect().doc("Internal to the public broker."),
    at_least("QUEEN_HOTLIST_PAD_MS", "", 300, 0).without_effect().doc("Internal to the public broker."),
    optional("QUEEN_HOTLIST_TRACE", "").without_effect().like("orders").doc("Internal to the public broker."),
];
