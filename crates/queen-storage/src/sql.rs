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
}
