-- Writes a note about a message, with the names that it can be found by. The message need not exist.
-- Caller: queen-storage traces.rs. Locks: none. Writes: message_traces, message_trace_names.
-- $1 tenant uuid, $2 partition uuid, $3 transaction id text, $4 group text, $5 kind text, $6 data bytea,
-- $7 its copy for dashboards text (NULL: JSONB cannot hold it), $8 names text[]
WITH note AS (
    INSERT INTO queen.message_traces
        (tenant_id, partition_id, transaction_id, consumer_group, event_type, data_raw, data, worker_id, created_at)
    VALUES ($1::uuid, $2::uuid, $3::text, $4::text, $5::text, $6::bytea, $7::text::jsonb, 'seg-rust', clock_timestamp())
    RETURNING id
), named AS (
    INSERT INTO queen.message_trace_names (trace_id, trace_name)
    SELECT n.id, i.name FROM note n, unnest($8::text[]) AS i (name)
    ON CONFLICT DO NOTHING
)
SELECT id FROM note
