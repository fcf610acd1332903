//! Names that are known without being variables of the broker.

/// Read by the command line tool; the broker says nothing about them.
pub(crate) const CLI_NAMES: &[&str] = &["QUEEN_SERVER", "QUEEN_TOKEN", "QUEEN_CONTEXT", "QUEEN_CONFIG"];

const ADMISSION: &str = "it has no effect; use QUEEN_ADMISSION_*";
const KV_SWITCH: &str = "no boot switch exists; runtime switch POST /api/v1/system/kv-timers";

/// Names that once meant something, each with what to say about it.
pub(crate) const DEAD_NAMES: &[(&str, &str)] = &[
    ("QUEEN_EPHEMERAL_ENABLED", "no boot switch exists; runtime switch POST /api/v1/system/ephemeral"),
    ("QUEEN_KV_ENABLED", KV_SWITCH),
    ("QUEEN_MESH_ALLOW_V1", "it has no effect; the mesh speaks protocol 2 only"),
    ("QUEEN_SEG_POP_INIT", ADMISSION),
    ("QUEEN_SEG_POP_MAX", ADMISSION),
    ("QUEEN_SEG_POP_MIN", ADMISSION),
    ("QUEEN_SEG_PUSH_INIT", ADMISSION),
    ("QUEEN_SEG_PUSH_MAX", ADMISSION),
    ("QUEEN_SEG_PUSH_MIN", ADMISSION),
    ("QUEEN_STATIC_DIR", "it has no effect; the dashboard is embedded"),
    ("QUEEN_TIMERS_ENABLED", KV_SWITCH),
    ("QUEEN_VEGAS_ALPHA", ADMISSION),
    ("QUEEN_VEGAS_BETA", ADMISSION),
];
