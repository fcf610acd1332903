-- The notes about one message, oldest first.
-- Caller: queen-storage traces.rs. Locks: none. Writes: nothing.
-- $1 tenant uuid, $2 partition uuid, $3 transaction id text
SELECT t.id, t.event_type, t.data_raw, t.consumer_group, t.created_at, t.transaction_id, t.partition_id,
       ARRAY(SELECT n.trace_name FROM queen.message_trace_names n WHERE n.trace_id = t.id ORDER BY n.trace_name) AS names,
       NULL::text AS queue, NULL::text AS partition
FROM queen.message_traces t
WHERE t.transaction_id = $3::text AND t.partition_id = $2::uuid AND t.tenant_id = $1::uuid
ORDER BY t.created_at, t.id
