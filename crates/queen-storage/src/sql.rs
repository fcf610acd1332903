//! The statements, by name. Each lives in a file of its own under `schema/statements/`.

macro_rules! statements {
    ($($name:ident = $path:literal;)*) => {
        $(pub(crate) const $name: &str = include_str!(concat!("../../../schema/statements/", $path));)*

        /// Every statement with its path, for the tests of plans and headers.
        pub const ALL: &[(&str, &str)] = &[$(($path, $name)),*];
    };
}

statements! {
    PUSH_RESOLVE = "push/resolve.sql";
    PUSH_PROVISION_QUEUES = "push/provision_queues.sql";
    PUSH_PROVISION_PARTITIONS = "push/provision_partitions.sql";
    PUSH_LOCK = "push/lock.sql";
    PUSH_HASHES = "push/hashes.sql";
    PUSH_INSERT_CLEAR = "push/insert_clear.sql";
    PUSH_INSERT = "push/insert.sql";
    SEGMENT_COVER = "segment/cover.sql";
    POP_CANDIDATES = "pop/candidates.sql";
    POP_CLAIM = "pop/claim.sql";
    POP_CLAIM_FIRST = "pop/claim_first.sql";
    POP_CLAIM_KNOWN = "pop/claim_known.sql";
    POP_TRIM = "pop/trim.sql";
    POP_SUBSCRIBE_QUEUE = "pop/subscribe_queue.sql";
    POP_REGISTER = "pop/register.sql";
    POP_REGISTRATION = "pop/registration.sql";
    POP_SEED = "pop/seed.sql";
    POP_SEED_PARTITION = "pop/seed_partition.sql";
    POP_MATCHING_QUEUES = "pop/matching_queues.sql";
    POP_WALK = "pop/walk.sql";
    POP_READY = "pop/ready.sql";
    POP_PROBE = "pop/probe.sql";
    POP_REPAIR_LOCK = "pop/repair_lock.sql";
    POP_REPAIR_CLAMP = "pop/repair_clamp.sql";
    ACK_FULL = "ack/full.sql";
    ACK_LOCK = "ack/lock.sql";
    ACK_SPAN = "ack/span.sql";
    ACK_SEARCH = "ack/search.sql";
    ACK_APPLY = "ack/apply.sql";
    ACK_DEAD_LETTER = "ack/dead_letter.sql";
    STATE_FLAGS = "state/flags.sql";
    STATE_SET_FLAG = "state/set_flag.sql";
    STATE_STAMPED = "state/stamped.sql";
    LEASE_EXTEND = "lease/extend.sql";
    LEASE_FIND = "lease/find.sql";
    LEASE_RELEASE = "lease/release.sql";
    MESSAGES_PAGE = "messages/page.sql";
    MESSAGES_STANDING = "messages/standing.sql";
    MESSAGES_DEAD = "messages/dead.sql";
    MESSAGES_FIND = "messages/find.sql";
    MESSAGES_RECORD = "messages/record.sql";
    MESSAGES_REPLAY_LOCK = "messages/replay_lock.sql";
    MESSAGES_REPLAY_DELETE = "messages/replay_delete.sql";
    MESSAGES_DELETE = "messages/delete.sql";
    MESSAGES_PURGE = "messages/purge.sql";
    TRACES_INSERT = "traces/insert.sql";
    TRACES_OF_MESSAGE = "traces/of_message.sql";
    TRACES_BY_NAME = "traces/by_name.sql";
    TRACES_NAMES = "traces/names.sql";
    GROUPS_PAGE = "groups/page.sql";
    GROUPS_LOCK_PARTITIONS = "groups/lock_partitions.sql";
    GROUPS_LOCK_MISSING = "groups/lock_missing.sql";
    GROUPS_LOCK_CURSORS = "groups/lock_cursors.sql";
    GROUPS_SEEK_OFFSET = "groups/seek_offset.sql";
    GROUPS_SEEK_TIME = "groups/seek_time.sql";
    GROUPS_REPAIR = "groups/repair.sql";
    GROUPS_REPAIRS = "groups/repairs.sql";
    GROUPS_REPAIRS_PRUNE = "groups/repairs_prune.sql";
    GROUPS_CURSOR_IDS = "groups/cursor_ids.sql";
    GROUPS_DELETE_METADATA = "groups/delete_metadata.sql";
    GROUPS_KEPT = "groups/kept.sql";
    GROUPS_DELETE_CURSORS = "groups/delete_cursors.sql";
    GROUPS_SUBSCRIPTION = "groups/subscription.sql";
    GROUPS_LIST = "groups/list.sql";
    GROUPS_CURSORS = "groups/cursors.sql";
}
