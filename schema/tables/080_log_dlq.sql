-- Dead letters: snapshots of messages that were given up. payload_raw is the message, byte for byte; payload is a
-- copy for dashboards, NULL where JSONB cannot hold it (U+0000, lone surrogates, numbers beyond numeric).

--@ table queen.log_dlq
CREATE TABLE IF NOT EXISTS queen.log_dlq (
    id                 UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    partition_id       UUID NOT NULL,
    consumer_group     TEXT NOT NULL,
    "offset"           BIGINT NOT NULL,
    message_id         UUID,
    transaction_id     TEXT,
    payload            JSONB,
    payload_raw        BYTEA,
    encrypted          BOOLEAN NOT NULL DEFAULT FALSE,
    producer_sub       TEXT,
    trace_id           UUID,
    error              TEXT,
    retry_count        INTEGER NOT NULL DEFAULT 0,
    -- when the message was stored; NULL when its segment was gone already
    message_created_at TIMESTAMPTZ,
    failed_at          TIMESTAMPTZ NOT NULL DEFAULT now()
);

--@ index queen.idx_log_dlq_partition_failed_at
CREATE INDEX IF NOT EXISTS idx_log_dlq_partition_failed_at ON queen.log_dlq (partition_id, failed_at DESC);
