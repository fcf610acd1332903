//! The statements, by name. Each lives in a file of its own under `schema/statements/admin/`.

macro_rules! statements {
    ($($name:ident = $file:literal;)*) => {
        $(pub(super) const $name: &str = include_str!(concat!("../../../../schema/statements/admin/", $file));)*

        /// Every statement with its path, for the tests of plans and headers.
        pub const ALL: &[(&str, &str)] = &[$((concat!("admin/", $file), $name)),*];
    };
}

statements! {
    QUEUE_LOAD = "queue_load.sql";
    QUEUE_CREATE = "queue_create.sql";
    QUEUE_LOCK = "queue_lock.sql";
    QUEUE_UPDATE = "queue_update.sql";
    QUEUE_LIST = "queue_list.sql";
    QUEUE_LIST_SEGMENTS = "queue_list_segments.sql";
    QUEUE_PARTITIONS = "queue_partitions.sql";
    QUEUE_PINS = "queue_pins.sql";
    QUEUE_SEGMENTS = "queue_segments.sql";
    DEPTH_WORST = "depth_worst.sql";
    DEPTH_GROUP = "depth_group.sql";
    DLQ_PAGE = "dlq_page.sql";
    PARTITION_IDS = "partition_ids.sql";
    DELETE_SIZE = "delete_size.sql";
    DELETE_PAGE = "delete_page.sql";
    DELETE_SOME = "delete_some.sql";
    DELETE_NOTE = "delete_note.sql";
    DELETE_LOCK_SOME = "delete_lock_some.sql";
    DELETE_PARTITIONS = "delete_partitions.sql";
    DELETE_LOCK_DLQ = "delete_lock_dlq.sql";
    DELETE_LOCK_QUEUE = "delete_lock_queue.sql";
    DELETE_LOCK_PARTITIONS = "delete_lock_partitions.sql";
    DELETE_SUBSCRIPTIONS = "delete_subscriptions.sql";
    DELETE_LOCK_CONSUMERS = "delete_lock_consumers.sql";
    DELETE_DLQ = "delete_dlq.sql";
    DELETE_TXNS = "delete_txns.sql";
    DELETE_SEGMENTS = "delete_segments.sql";
    DELETE_CONSUMERS = "delete_consumers.sql";
    DELETE_QUEUE = "delete_queue.sql";
}
