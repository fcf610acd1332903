use super::variable::{Variable, at_least, boolean, clamped};

pub(super) const VARIABLES: &[Variable] = &[
    boolean("QUEEN_SWEEPER", "sweeper.enabled", true)
        .doc("False: timers never fire and expired keys stay; nothing is lost."),
    at_least("QUEEN_SWEEPER_LEASE_MS", "sweeper.lease_ms", 30_000, 1)
        .doc("Lease of a claim: the worst delay after a broker stopped."),
    at_least("QUEEN_SWEEPER_MAX_SLEEP_MS", "sweeper.max_sleep_ms", 1_000, 1)
        .doc("Worst delay of a timer that another broker scheduled."),
    at_least("QUEEN_SWEEPER_MIN_SLEEP_MS", "sweeper.min_sleep_ms", 5, 1).doc("Shortest sleep."),
    at_least("QUEEN_SWEEPER_IDLE_MAX_SLEEP_MS", "sweeper.idle_max_sleep_ms", 30_000, 1)
        .doc("Longest sleep on an empty table."),
    clamped("QUEEN_SWEEPER_IDLE_AFTER_CYCLES", "sweeper.idle_after_cycles", 5, 1, 1_000)
        .doc("Empty cycles after which it is idle."),
    at_least("QUEEN_SWEEPER_EMPTY_CLAIM_MIN_MS", "sweeper.empty_claim_min_ms", 25, 1)
        .doc("Shortest sleep while others hold the due rows."),
    at_least("QUEEN_SWEEPER_EMPTY_CLAIM_MAX_MS", "sweeper.empty_claim_max_ms", 200, 1)
        .doc("Longest sleep while others hold the due rows."),
    at_least("QUEEN_SWEEPER_CLAIM_BATCH", "sweeper.claim_batch", 200, 1).doc("Rows per claim."),
    at_least("QUEEN_SWEEPER_CYCLE_MAX_ROWS", "sweeper.cycle_max_rows", 5_000, 1).doc("Rows per cycle."),
    at_least("QUEEN_SWEEPER_DUE_CAP", "sweeper.due_cap", 2_000, 1).doc("Cap of the count of due rows."),
    at_least("QUEEN_SWEEPER_MAX_FIRE_BYTES", "sweeper.max_fire_bytes", 8_388_608, 1)
        .doc("Bytes per fire transaction."),
    at_least("QUEEN_SWEEPER_MAX_ATTEMPTS", "sweeper.max_attempts", 5, 1)
        .doc("Attempts before a timer is dead-lettered under the group `__timer__`."),
    clamped("QUEEN_SWEEPER_PARALLELISM", "sweeper.parallelism", 1, 1, 8).doc("Workers."),
    boolean("QUEEN_SWEEPER_ISOLATE_ON_PERMANENT", "sweeper.isolate_on_permanent", true)
        .doc("Fire one segment at a time after a permanent error."),
    at_least("QUEEN_SWEEPER_FIRE_RATE_PER_TENANT", "sweeper.fire_rate_per_tenant", 50, 1)
        .doc("Timers of a tenant per claim."),
    at_least("QUEEN_SWEEPER_BACKOFF_MIN_MS", "sweeper.backoff.min_ms", 1_000, 1)
        .doc("First delay of a failed timer."),
    at_least("QUEEN_SWEEPER_BACKOFF_MAX_MS", "sweeper.backoff.max_ms", 60_000, 1)
        .doc("Longest delay of a failed timer."),
    at_least("QUEEN_SWEEPER_TRANSIENT_BACKOFF_MS", "sweeper.backoff.transient_ms", 1_000, 1)
        .doc("Delay after a passing failure."),
];
