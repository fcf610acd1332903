use super::variable::{Variable, at_least, boolean, choice, int, text};

pub(super) const VARIABLES: &[Variable] = &[
    text("FILE_BUFFER_DIR", "spool.dir", "/var/lib/queen/buffers").live().doc(
        "Directory of the spool: on this node, of this broker alone. Quarantine is its folder `failed`.",
    ),
    at_least("FILE_BUFFER_FLUSH_MS", "spool.flush_interval_ms", 100, 1).live().doc("Period of the drain."),
    at_least("FILE_BUFFER_MAX_BATCH", "spool.max_batch", 100, 1).live().doc("Events per replay transaction."),
    at_least("FILE_BUFFER_EVENTS_PER_FILE", "spool.events_per_file", 10_000, 1)
        .live()
        .doc("Events before a file is rotated."),
    int("QUEEN_SPOOL_MAX_BYTES", "spool.max_bytes", 0, 0, i64::MAX)
        .like("1073741824")
        .live()
        .doc("Ceiling of the spool's size, 0 for none; above it pushes fail early."),
    int("QUEEN_SPOOL_MIN_FREE_BYTES", "spool.min_free_bytes", 67_108_864, 0, i64::MAX)
        .live()
        .doc("Free space that the spool leaves, never more than 5% of the file system."),
    choice("QUEEN_SPOOL_FSYNC", "spool.fsync", "batch", &[("always", &[]), ("batch", &[]), ("never", &[])])
        .live()
        .doc("When spooled events are synced, so that an answer `buffered` survives a power loss."),
    int("QUEEN_SPOOL_FSYNC_MS", "spool.fsync_ms", 5, 0, 60_000)
        .live()
        .doc("Longest gap between two syncs of a batch."),
    boolean("QUEEN_SPOOL_REQUIRED", "spool.required", true).live().doc(
        "False: a directory that cannot be used makes pushes fail in an outage instead of refusing to start.",
    ),
    choice("QUEEN_SPOOL_ON_CONFLICT", "spool.on_conflict", "refuse", &[("refuse", &[]), ("subdir", &[])])
        .live()
        .doc("What a second broker on the same directory does."),
    boolean("QUEEN_SPOOL_ORDERED", "spool.ordered", false).live().doc(
        "Keep the order of a partition through an outage: its pushes are spooled until its spool is drained.",
    ),
    boolean("QUEEN_SPOOL_DELETE_UNMOVABLE", "spool.delete_unmovable", false)
        .live()
        .doc("Delete a file that cannot be moved to quarantine instead of keeping it."),
];
