use super::variable::{Variable, at_least, boolean_like, clamped};

pub(super) const VARIABLES: &[Variable] = &[
    at_least("QUEEN_EPHEMERAL_MAX_BYTES", "ephemeral.max_bytes", 268_435_456, 1)
        .doc("Memory of all in-memory queues."),
    at_least("QUEEN_EPHEMERAL_QUEUE_MAX_BYTES", "ephemeral.queue_max_bytes", 16_777_216, 1)
        .doc("Memory of one of them."),
    at_least("QUEEN_EPHEMERAL_QUEUE_MAX_LENGTH", "ephemeral.queue_max_length", 10_000, 1)
        .doc("Messages of one of them."),
    clamped("QUEEN_EPHEMERAL_LEASE_S", "ephemeral.lease_s", 30, 1, 86_400).doc("Lease, seconds."),
    clamped("QUEEN_EPHEMERAL_RETRY_LIMIT", "ephemeral.retry_limit", 5, 1, 1_000)
        .doc("Deliveries before a message is dropped."),
    at_least("QUEEN_EPHEMERAL_IMPLICIT_IDLE_S", "ephemeral.implicit_idle_s", 300, 0)
        .doc("Idle time after which an implicit queue is dropped, 0 for never."),
    boolean_like(
        "QUEEN_EPHEMERAL_REQUIRE_GRANT",
        "ephemeral.require_grant",
        "value of `QUEEN_TENANCY_HEADER`",
    )
    .doc("Refuse a tenant without a quota row."),
    at_least("QUEEN_EPHEMERAL_RATE", "ephemeral.rate", 5_000, 1).doc("Messages a second of a tenant."),
    at_least("QUEEN_EPHEMERAL_BURST", "ephemeral.burst", 10_000, 1).doc("Burst of a tenant."),
];
