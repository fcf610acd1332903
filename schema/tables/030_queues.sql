-- Identity and configuration of a queue, one row each. Column defaults are those of a queue born by a push; a queue
-- born by /configure is inserted with its own values (lease_time 300). idx_queues_retention holds the queues that retention
-- has to look at.

--@ table queen.queues
CREATE TABLE IF NOT EXISTS queen.queues (
    id                          UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    name                        VARCHAR(255) NOT NULL,
    tenant_id                   UUID NOT NULL DEFAULT '00000000-0000-0000-0000-000000000001',
    namespace                   VARCHAR(255),
    task                        VARCHAR(255),
    priority                    INTEGER NOT NULL DEFAULT 0,
    lease_time                  INTEGER NOT NULL DEFAULT 60,
    retry_limit                 INTEGER NOT NULL DEFAULT 3,
    retry_delay                 INTEGER NOT NULL DEFAULT 1000,
    ttl                         INTEGER NOT NULL DEFAULT 3600,
    dead_letter_queue           BOOLEAN NOT NULL DEFAULT TRUE,
    dlq_after_max_retries       BOOLEAN NOT NULL DEFAULT TRUE,
    delayed_processing          INTEGER NOT NULL DEFAULT 0,
    window_buffer               INTEGER NOT NULL DEFAULT 0,
    retention_seconds           INTEGER NOT NULL DEFAULT 0,
    completed_retention_seconds INTEGER NOT NULL DEFAULT 0,
    retention_enabled           BOOLEAN NOT NULL DEFAULT FALSE,
    encryption_enabled          BOOLEAN NOT NULL DEFAULT FALSE,
    max_wait_time_seconds       INTEGER NOT NULL DEFAULT 0,
    max_queue_size              INTEGER NOT NULL DEFAULT 0,
    min_pop_wait_time           INTEGER NOT NULL DEFAULT 0,
    dedup_window_seconds        INTEGER NOT NULL DEFAULT 3600 CHECK (dedup_window_seconds >= 0),
    retry_backoff               TEXT NOT NULL DEFAULT 'none',
    retry_delay_max             INTEGER NOT NULL DEFAULT 60000,
    retry_jitter                REAL NOT NULL DEFAULT 0,
    max_delivery_attempts       INTEGER NOT NULL DEFAULT 0,
    group_expiry_seconds        INTEGER NOT NULL DEFAULT 0,
    dlq_retention_seconds       INTEGER NOT NULL DEFAULT 0,
    redeliver_skipped           BOOLEAN NOT NULL DEFAULT FALSE,
    protect_leased              BOOLEAN NOT NULL DEFAULT FALSE,
    -- push, configure, subscribe, transaction, ...: a row born by a mistyped pop is told apart by it
    created_by                  TEXT,
    created_at                  TIMESTAMPTZ NOT NULL DEFAULT now()
);

--@ index queen.queues_tenant_name_uk
CREATE UNIQUE INDEX IF NOT EXISTS queues_tenant_name_uk ON queen.queues (tenant_id, name);
--@ index queen.idx_queues_retention
CREATE INDEX IF NOT EXISTS idx_queues_retention ON queen.queues (id)
    WHERE retention_enabled AND (retention_seconds > 0 OR completed_retention_seconds > 0) OR max_wait_time_seconds > 0;
