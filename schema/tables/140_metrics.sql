-- What each broker counted, a row per minute: of the process, of each queue, of the parked pops, and of the machine.
-- Written by each broker for itself, deleted after METRICS_RETENTION_DAYS.
--@ table queen.worker_metrics
CREATE TABLE IF NOT EXISTS queen.worker_metrics (
    hostname              TEXT NOT NULL,
    worker_id             INTEGER NOT NULL DEFAULT 0,
    pid                   INTEGER NOT NULL,
    bucket_time           TIMESTAMPTZ NOT NULL,
    avg_event_loop_lag_ms INTEGER NOT NULL DEFAULT 0,
    max_event_loop_lag_ms INTEGER NOT NULL DEFAULT 0,
    avg_free_slots        INTEGER NOT NULL DEFAULT 0,
    min_free_slots        INTEGER NOT NULL DEFAULT 0,
    db_connections        INTEGER NOT NULL DEFAULT 0,
    avg_job_queue_size    INTEGER NOT NULL DEFAULT 0,
    max_job_queue_size    INTEGER NOT NULL DEFAULT 0,
    backoff_size          INTEGER NOT NULL DEFAULT 0,
    jobs_done             BIGINT NOT NULL DEFAULT 0,
    push_request_count    BIGINT NOT NULL DEFAULT 0,
    pop_request_count     BIGINT NOT NULL DEFAULT 0,
    ack_request_count     BIGINT NOT NULL DEFAULT 0,
    transaction_count     BIGINT NOT NULL DEFAULT 0,
    push_message_count    BIGINT NOT NULL DEFAULT 0,
    pop_message_count     BIGINT NOT NULL DEFAULT 0,
    ack_message_count     BIGINT NOT NULL DEFAULT 0,
    ack_success_count     BIGINT NOT NULL DEFAULT 0,
    ack_failed_count      BIGINT NOT NULL DEFAULT 0,
    lag_count             BIGINT NOT NULL DEFAULT 0,
    avg_lag_ms            BIGINT NOT NULL DEFAULT 0,
    max_lag_ms            BIGINT NOT NULL DEFAULT 0,
    db_error_count        BIGINT NOT NULL DEFAULT 0,
    dlq_count             BIGINT NOT NULL DEFAULT 0,
    created_at            TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (bucket_time, hostname, worker_id, pid)
);
--@ table queen.queue_lag_metrics
CREATE TABLE IF NOT EXISTS queen.queue_lag_metrics (
    id                 UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    bucket_time        TIMESTAMPTZ NOT NULL,
    queue_id           UUID NOT NULL REFERENCES queen.queues (id) ON DELETE CASCADE,
    pop_count          BIGINT NOT NULL DEFAULT 0,
    avg_lag_ms         BIGINT NOT NULL DEFAULT 0,
    max_lag_ms         BIGINT NOT NULL DEFAULT 0,
    lag_count          BIGINT NOT NULL DEFAULT 0,
    push_request_count BIGINT NOT NULL DEFAULT 0,
    push_message_count BIGINT NOT NULL DEFAULT 0,
    pop_empty_count    BIGINT NOT NULL DEFAULT 0,
    ack_request_count  BIGINT NOT NULL DEFAULT 0,
    ack_success_count  BIGINT NOT NULL DEFAULT 0,
    ack_failed_count   BIGINT NOT NULL DEFAULT 0,
    transaction_count  BIGINT NOT NULL DEFAULT 0,
    partitions_created BIGINT NOT NULL DEFAULT 0,
    partitions_deleted BIGINT NOT NULL DEFAULT 0,
    partition_count    BIGINT NOT NULL DEFAULT 0,
    parked_count       BIGINT NOT NULL DEFAULT 0,
    conflated_count    BIGINT NOT NULL DEFAULT 0,
    created_at         TIMESTAMPTZ NOT NULL DEFAULT now()
);
--@ index queen.qlm_bucket_queue_uk
CREATE UNIQUE INDEX IF NOT EXISTS qlm_bucket_queue_uk ON queen.queue_lag_metrics (bucket_time, queue_id);
--@ index queen.idx_qlm_queue
CREATE INDEX IF NOT EXISTS idx_qlm_queue ON queen.queue_lag_metrics (queue_id);
--@ table queen.queue_parked_replica
CREATE TABLE IF NOT EXISTS queen.queue_parked_replica (
    bucket_time  TIMESTAMPTZ NOT NULL,
    queue_name   VARCHAR(512) NOT NULL,
    hostname     TEXT NOT NULL,
    worker_id    INTEGER NOT NULL DEFAULT 0,
    tenant_id    UUID NOT NULL DEFAULT '00000000-0000-0000-0000-000000000001',
    parked_count INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (bucket_time, queue_name, hostname, worker_id, tenant_id)
);
--@ table queen.system_metrics
CREATE TABLE IF NOT EXISTS queen.system_metrics (
    id           UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    "timestamp"  TIMESTAMPTZ NOT NULL,
    hostname     TEXT NOT NULL,
    port         INTEGER NOT NULL DEFAULT 0,
    worker_id    TEXT NOT NULL DEFAULT '',
    sample_count INTEGER NOT NULL DEFAULT 60,
    metrics      JSONB NOT NULL,
    CONSTRAINT system_metrics_uk UNIQUE ("timestamp", hostname, port, worker_id)
);
