-- What applications noted about messages. No foreign keys to the log: a note outlives its message. data_raw is what was
-- sent, byte for byte; data is a copy for dashboards, NULL where JSONB cannot hold it.

--@ table queen.message_traces
CREATE TABLE IF NOT EXISTS queen.message_traces (
    id             UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id      UUID NOT NULL DEFAULT '00000000-0000-0000-0000-000000000001',
    message_id     UUID,
    partition_id   UUID NOT NULL,
    transaction_id VARCHAR(255) NOT NULL,
    consumer_group TEXT,
    event_type     VARCHAR(100) NOT NULL,
    data           JSONB,
    data_raw       BYTEA,
    created_at     TIMESTAMPTZ NOT NULL DEFAULT now(),
    worker_id      TEXT
);

--@ index queen.idx_message_traces_message_id
CREATE INDEX IF NOT EXISTS idx_message_traces_message_id ON queen.message_traces (message_id);

--@ index queen.idx_message_traces_transaction_partition
CREATE INDEX IF NOT EXISTS idx_message_traces_transaction_partition ON queen.message_traces (transaction_id, partition_id);

--@ index queen.idx_message_traces_created_at
CREATE INDEX IF NOT EXISTS idx_message_traces_created_at ON queen.message_traces (created_at DESC);

--@ index queen.idx_message_traces_partition_id
CREATE INDEX IF NOT EXISTS idx_message_traces_partition_id ON queen.message_traces (partition_id);

--@ table queen.message_trace_names
CREATE TABLE IF NOT EXISTS queen.message_trace_names (
    trace_id   UUID NOT NULL REFERENCES queen.message_traces (id) ON DELETE CASCADE,
    trace_name TEXT NOT NULL,
    PRIMARY KEY (trace_id, trace_name)
);

--@ index queen.idx_message_trace_names_name
CREATE INDEX IF NOT EXISTS idx_message_trace_names_name ON queen.message_trace_names (trace_name);
