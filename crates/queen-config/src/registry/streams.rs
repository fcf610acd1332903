use super::variable::{Variable, int};

pub(super) const VARIABLES: &[Variable] = &[
    int("QUEEN_STREAMS_MAX_KEY_BYTES", "streams.max_key_bytes", 512, 1, i64::MAX)
        .doc("Ceiling of a state key."),
    int("QUEEN_STREAMS_MAX_VALUE_BYTES", "streams.max_value_bytes", 1_048_576, 1, i64::MAX)
        .doc("Ceiling of a state value."),
    int("QUEEN_STREAMS_MAX_OPS_PER_CYCLE", "streams.max_ops_per_cycle", 10_000, 1, i64::MAX)
        .doc("State operations of one cycle."),
];
