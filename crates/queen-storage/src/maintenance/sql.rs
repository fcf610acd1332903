//! The statements, by name. Each lives in a file of its own under `schema/statements/maintenance/`.

statements! { "maintenance/":
    DECLARE = "declare.sql";
    CLAIM = "claim.sql";
    RENEW = "renew.sql";
    RELEASE = "release.sql";
    GIVE_UP = "give_up.sql";
    JOBS = "jobs.sql";
    SWITCH = "switch.sql";
    DUE_NOW = "due_now.sql";
    NOW = "now.sql";
    HOLDER = "holder.sql";
    DUE = "due.sql";
    HOLD = "hold.sql";
    STEP = "step.sql";
    TXNS_DUE = "txns_due.sql";
    TXNS_STEP = "txns_step.sql";
    MARK = "mark.sql";
    WALK = "walk.sql";
    CLEANUP_DUE = "cleanup_due.sql";
    CLEANUP_LOCK = "cleanup_lock.sql";
    CLEANUP_CURSORS = "cleanup_cursors.sql";
    CLEANUP = "cleanup.sql";
    DLQ_DUE = "dlq_due.sql";
    DLQ_STEP = "dlq_step.sql";
}
