-- Background work that one broker does for all: who does it now, and when it is due again. The database's clock alone
-- counts. A claim raises the fence, so that whoever lost its lease meanwhile releases nothing.
--
-- And what retention deleted: one row per partition, rule and step. No foreign key: it outlives what it tells of.
--@ table queen.maintenance_leases
CREATE TABLE IF NOT EXISTS queen.maintenance_leases (
    task             TEXT PRIMARY KEY,
    period_ms        BIGINT NOT NULL,
    next_due_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    lease_until      TIMESTAMPTZ,
    holder           TEXT,
    fence            BIGINT NOT NULL DEFAULT 0,
    last_start_at    TIMESTAMPTZ,
    last_end_at      TIMESTAMPTZ,
    last_duration_ms BIGINT,
    runs             BIGINT NOT NULL DEFAULT 0,
    enabled          BOOLEAN NOT NULL DEFAULT TRUE
);
--@ table queen.retention_history
CREATE TABLE IF NOT EXISTS queen.retention_history (
    id               UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    partition_id     UUID NOT NULL,
    -- beside the columns of the public broker: whose data it was
    tenant_id        UUID,
    messages_deleted INTEGER NOT NULL DEFAULT 0,
    -- retention, completed_retention, max_wait_time_eviction, __partition_deleted__
    retention_type   VARCHAR(50) NOT NULL,
    executed_at      TIMESTAMPTZ NOT NULL DEFAULT now()
);
--@ index queen.idx_retention_history_partition
CREATE INDEX IF NOT EXISTS idx_retention_history_partition ON queen.retention_history (partition_id);
--@ index queen.idx_retention_history_executed
CREATE INDEX IF NOT EXISTS idx_retention_history_executed ON queen.retention_history (executed_at);
