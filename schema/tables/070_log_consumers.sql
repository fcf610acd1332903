-- Cursor, lease and retry state, one row per (partition, group), written when a group first claims the partition.
-- No secondary index, so that every lease and every ack is a HOT update. No foreign key: whoever makes a cursor holds
-- its partition's row, whoever deletes a partition deletes its cursors (docs/decisions/011).

--@ table queen.log_consumers
CREATE TABLE IF NOT EXISTS queen.log_consumers (
    partition_id      UUID NOT NULL,
    consumer_group    TEXT NOT NULL DEFAULT '__QUEUE_MODE__',
    -- everything at or below is done
    committed         BIGINT NOT NULL DEFAULT -1,
    -- inclusive end of the leased span; NULL without a lease
    batch_end         BIGINT,
    worker_id         TEXT,
    lease_expires_at  TIMESTAMPTZ,
    lease_acquired_at TIMESTAMPTZ,
    -- retry budget used, and the offset that used it
    batch_retry_count INTEGER NOT NULL DEFAULT 0,
    retry_offset      BIGINT,
    -- not claimable before (queue option retryBackoff)
    retry_at          TIMESTAMPTZ,
    -- head of the last delivered batch and how often it was delivered
    attempt_offset    BIGINT,
    attempt_count     INTEGER NOT NULL DEFAULT 0,
    total_consumed    BIGINT NOT NULL DEFAULT 0,
    lease_conflated   BOOLEAN NOT NULL DEFAULT FALSE,
    -- the last claim; queue option groupExpirySeconds counts from here
    active_at         TIMESTAMPTZ NOT NULL DEFAULT now(),
    created_at        TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (partition_id, consumer_group),
    CONSTRAINT log_consumers_lease CHECK (
        (worker_id IS NULL) = (batch_end IS NULL) AND (worker_id IS NULL) = (lease_expires_at IS NULL)
    ),
    CONSTRAINT log_consumers_span CHECK (committed >= -1 AND (batch_end IS NULL OR batch_end >= committed))
);

--@ reloptions queen.log_consumers fillfactor=50 autovacuum_vacuum_scale_factor=0 autovacuum_vacuum_threshold=500 autovacuum_vacuum_cost_delay=0 vacuum_truncate=off
ALTER TABLE queen.log_consumers SET (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);
