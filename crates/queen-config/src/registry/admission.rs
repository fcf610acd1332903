use super::variable::{Variable, at_least, boolean, float, int};

pub(super) const VARIABLES: &[Variable] = &[
    at_least("QUEEN_ADMISSION_INIT", "admission.init", 96, 1)
        .derived("the floor")
        .like("96")
        .live()
        .doc("Write transactions that may be open at the start."),
    at_least("QUEEN_ADMISSION_MIN", "admission.min", 96, 1)
        .derived("two thirds of the pool less its reserve, at least 8")
        .like("96")
        .live()
        .doc(
            "Floor of that budget. No lane is held below its share of it; a low floor leaves the arbiter to find how few \
             transactions carry the load.",
        ),
    at_least("QUEEN_ADMISSION_MAX", "admission.max", 128, 1)
        .live()
        .doc("Ceiling of that budget; the pool less its reserve bounds it too."),
    at_least("QUEEN_ADMISSION_POOL_RESERVE", "admission.pool_reserve", 16, 0)
        .derived("the smaller of 16 and a quarter of the pool")
        .like("16")
        .live()
        .doc("Connections kept out of the budget."),
    float("QUEEN_ADMISSION_SHARE_PUSH", "admission.share.push", 0.25, 0.0, 1.0)
        .live()
        .doc("Guaranteed share of pushes. The four shares sum to at most 1."),
    float("QUEEN_ADMISSION_SHARE_POP", "admission.share.pop", 0.40, 0.0, 1.0)
        .live()
        .doc("Guaranteed share of pops."),
    float("QUEEN_ADMISSION_SHARE_ACK", "admission.share.ack", 0.30, 0.0, 1.0)
        .live()
        .doc("Guaranteed share of acks."),
    float("QUEEN_ADMISSION_SHARE_MAINT", "admission.share.maint", 0.05, 0.0, 1.0)
        .live()
        .doc("Guaranteed share of replay, retention and collectors."),
    at_least("QUEEN_ADMISSION_TICK_MS", "admission.tick_ms", 500, 100).live().doc("Period of the adapter."),
    at_least("QUEEN_ADMISSION_TRAIN_GAP_US", "admission.train_gap_us", 300, 50)
        .live()
        .doc("Gap that separates two trains of commits, microseconds."),
    at_least("QUEEN_ADMISSION_NOSYNC_BUDGET", "admission.nosync_budget", 64, 1)
        .live()
        .doc("Budget while commits look unsynchronised."),
    int("QUEEN_ADMISSION_WAIT_MS", "admission.wait_ms", 30_000, 1, 3_600_000)
        .live()
        .doc("Longest wait for a slot; then 503 with `Retry-After`."),
    boolean("QUEEN_ADMISSION_TRACE", "", false).live().doc("Log every tick."),
];
