-- Counters of queues, namespaces, tasks and tenants, recomputed by one broker at a time. stat_type is queue (key: the
-- queue's id), namespace, task (key: tenant/name) or system (key: global, or the tenant's id). retained_bytes and
-- segment_count have one writer, the slow count of stored bytes.
--@ table queen.stats
CREATE TABLE IF NOT EXISTS queen.stats (
    stat_type               VARCHAR(20) NOT NULL,
    stat_key                VARCHAR(512) NOT NULL,
    tenant_id               UUID,
    queue_id                UUID,
    partition_id            UUID,
    consumer_group          TEXT,
    child_count             BIGINT NOT NULL DEFAULT 0,
    total_messages          BIGINT NOT NULL DEFAULT 0,
    pending_messages        BIGINT NOT NULL DEFAULT 0,
    processing_messages     BIGINT NOT NULL DEFAULT 0,
    completed_messages      BIGINT NOT NULL DEFAULT 0,
    dead_letter_messages    BIGINT NOT NULL DEFAULT 0,
    retained_bytes          BIGINT NOT NULL DEFAULT 0,
    segment_count           BIGINT NOT NULL DEFAULT 0,
    oldest_pending_at       TIMESTAMPTZ,
    newest_message_at       TIMESTAMPTZ,
    avg_lag_seconds         BIGINT NOT NULL DEFAULT 0,
    max_lag_seconds         BIGINT NOT NULL DEFAULT 0,
    median_lag_seconds      BIGINT NOT NULL DEFAULT 0,
    min_lag_seconds         BIGINT NOT NULL DEFAULT 0,
    avg_offset_lag          BIGINT NOT NULL DEFAULT 0,
    max_offset_lag          BIGINT NOT NULL DEFAULT 0,
    median_offset_lag       BIGINT NOT NULL DEFAULT 0,
    min_offset_lag          BIGINT NOT NULL DEFAULT 0,
    ingested_per_second     NUMERIC(10,2) NOT NULL DEFAULT 0,
    processed_per_second    NUMERIC(10,2) NOT NULL DEFAULT 0,
    -- log ends and worst cursors added up at the last snapshot: what the two rates are taken from
    prev_total_messages     BIGINT NOT NULL DEFAULT 0,
    prev_completed_messages BIGINT NOT NULL DEFAULT 0,
    prev_snapshot_at        TIMESTAMPTZ,
    last_scanned_at         TIMESTAMPTZ,
    last_scanned_message_id UUID,
    last_computed_at        TIMESTAMPTZ,
    PRIMARY KEY (stat_type, stat_key)
);
--@ reloptions queen.stats fillfactor=50 autovacuum_vacuum_scale_factor=0.01 autovacuum_vacuum_threshold=50 autovacuum_vacuum_cost_delay=0
ALTER TABLE queen.stats SET (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 50,
    autovacuum_vacuum_cost_delay = 0
);
