-- One row per partition: the write serializer. A push locks the row FOR NO KEY UPDATE and does not change it: where a
-- partition ends is the larger of last_offset and the newest segment's end_offset (docs/decisions/001). So a hot
-- partition leaves no dead versions behind, and only maintenance rewrites the row.

--@ table queen.log_partitions
CREATE TABLE IF NOT EXISTS queen.log_partitions (
    id             UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    queue_id       UUID NOT NULL REFERENCES queen.queues (id) ON DELETE CASCADE,
    name           TEXT NOT NULL DEFAULT 'Default',
    -- highest offset known when the last segments were deleted; lags otherwise
    last_offset    BIGINT NOT NULL DEFAULT -1,
    -- every offset below is deleted
    log_start      BIGINT NOT NULL DEFAULT 0,
    -- every hash below is purged
    txns_start     BIGINT NOT NULL DEFAULT 0,
    -- of an empty partition: when it was written last, as far as maintenance noticed
    last_write_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    -- stamp of the oldest segment, NULL without one; a push that finds NULL has the broker set it soon after
    oldest_live_at TIMESTAMPTZ,
    -- stamp of the oldest row of log_txns
    oldest_txn_at  TIMESTAMPTZ,
    -- place on the work list of retention: oldest_live_at, or later while a cursor or a lease holds that segment
    retention_from TIMESTAMPTZ,
    created_at     TIMESTAMPTZ NOT NULL DEFAULT now(),
    CONSTRAINT log_partitions_queue_name_uk UNIQUE (queue_id, name)
);

--@ index queen.idx_log_partitions_queue_write
CREATE INDEX IF NOT EXISTS idx_log_partitions_queue_write ON queen.log_partitions (queue_id, last_write_at);

--@ index queen.idx_log_partitions_queue_oldest
CREATE INDEX IF NOT EXISTS idx_log_partitions_queue_oldest ON queen.log_partitions (queue_id, oldest_live_at)
    WHERE oldest_live_at IS NOT NULL;

--@ index queen.idx_log_partitions_queue_oldest_txn
CREATE INDEX IF NOT EXISTS idx_log_partitions_queue_oldest_txn ON queen.log_partitions (queue_id, oldest_txn_at)
    WHERE oldest_txn_at IS NOT NULL;

--@ index queen.idx_log_partitions_queue_retention
CREATE INDEX IF NOT EXISTS idx_log_partitions_queue_retention ON queen.log_partitions (queue_id, retention_from)
    WHERE retention_from IS NOT NULL;
--@ index queen.idx_log_partitions_empty
CREATE INDEX IF NOT EXISTS idx_log_partitions_empty ON queen.log_partitions (last_write_at)
    WHERE oldest_live_at IS NULL;
--@ reloptions queen.log_partitions fillfactor=70 autovacuum_vacuum_scale_factor=0 autovacuum_vacuum_threshold=500 autovacuum_vacuum_cost_delay=0 vacuum_truncate=off
ALTER TABLE queen.log_partitions SET (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);
