use super::variable::{Variable, at_least, boolean_like, clamped};

pub(super) const VARIABLES: &[Variable] = &[
    at_least("QUEEN_KV_MAX_VALUE_BYTES", "kv.max_value_bytes", 65_536, 1).doc("Ceiling of a value."),
    at_least("QUEEN_KV_MAX_KEY_BYTES", "kv.max_key_bytes", 512, 1)
        .warn_above(2_048)
        .doc("Ceiling of a key; much more does not fit an index."),
    at_least("QUEEN_KV_MAX_OPS_PER_CALL", "kv.max_ops_per_call", 256, 1)
        .doc("Operations of one call; inside a transaction it is 64."),
    at_least("QUEEN_KV_MAX_KEYS_PER_CALL", "kv.max_keys_per_call", 1_024, 1).doc("Keys of one call."),
    at_least("QUEEN_KV_MAX_READ_BYTES", "kv.max_read_bytes", 4_194_304, 1)
        .doc("Value bytes that one call reads."),
    at_least("QUEEN_KV_PREFIX_LIMIT", "kv.prefix_limit", 1_000, 1).doc("Ceiling of a prefix read's limit."),
    at_least("QUEEN_KV_POOL_SIZE", "kv.pool_size", 16, 1)
        .derived("a tenth of the pool, 4 to 32")
        .like("16")
        .doc("Connections of the pool of its own."),
    boolean_like("QUEEN_KV_REQUIRE_GRANT", "kv.require_grant", "value of `QUEEN_TENANCY_HEADER`")
        .doc("Refuse a tenant without a quota row."),
    at_least("QUEEN_KV_READ_RATE", "kv.rate.read", 200, 1).doc("Reads a second of a tenant."),
    at_least("QUEEN_KV_READ_BURST", "kv.rate.read_burst", 400, 1).doc("Burst of reads of a tenant."),
    at_least("QUEEN_KV_WRITE_RATE", "kv.rate.write", 100, 1).doc("Writes a second of a tenant."),
    at_least("QUEEN_KV_WRITE_BURST", "kv.rate.write_burst", 200, 1).doc("Burst of writes of a tenant."),
    at_least("QUEEN_KV_CELL_RATE", "kv.rate.cell", 2_000, 0).doc("Ceiling for the whole broker, 0 for none."),
    at_least("QUEEN_KV_MAX_TENANTS", "kv.max_tenants", 10_000, 1)
        .doc("Tenants remembered; more are denied, none is evicted."),
    at_least("QUEEN_KV_USAGE_EVERY_MS", "kv.quota.usage_every_ms", 300_000, 1_000)
        .doc("Period at which use is counted."),
    at_least("QUEEN_KV_QUOTA_REFRESH_MS", "kv.quota.refresh_ms", 30_000, 1_000)
        .doc("Period at which quotas are read."),
    clamped("QUEEN_KV_QUOTA_RELEASE_PERCENT", "kv.quota.release_percent", 90, 1, 99)
        .doc("Use at which a tenant over its quota may write again."),
    clamped("QUEEN_KV_QUOTA_HOT_PERCENT", "kv.quota.hot_percent", 80, 1, 100)
        .doc("Use from which a tenant is watched closely."),
    at_least("QUEEN_KV_STANDALONE_SHED_AFTER", "kv.shed_after", 5, 1)
        .doc("Failures after which reads are shed."),
    at_least("QUEEN_KV_EXPIRE_EVERY_MS", "kv.expire.interval_ms", 1_000, 1)
        .doc("Period at which expired rows are deleted."),
    at_least("QUEEN_KV_EXPIRE_BATCH", "kv.expire.batch", 1_000, 1).doc("Expired rows deleted at a time."),
    at_least("QUEEN_TIMERS_MAX_PAYLOAD_BYTES", "timers.max_payload_bytes", 1_048_576, 1)
        .doc("Ceiling of a timer's payload."),
    at_least("QUEEN_TIMERS_MAX_HORIZON_S", "timers.max_horizon_s", 7_776_000, 1)
        .doc("How far ahead a timer may be set, seconds."),
    at_least("QUEEN_TIMERS_MAX_OPS_PER_CALL", "timers.max_ops_per_call", 256, 1)
        .doc("Operations of one call."),
];
