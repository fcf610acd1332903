-- One page of the notes with a name, oldest first, and how many there are. The first column is the total; it comes back
-- also when the page is empty, beside a NULL id.
-- Caller: queen-storage traces.rs. Locks: none. Writes: nothing.
-- $1 tenant uuid, $2 name text, $3 limit int8, $4 offset int8
WITH hit AS MATERIALIZED (
    SELECT t.id, t.created_at
    FROM queen.message_trace_names n
    CROSS JOIN LATERAL (
        SELECT t.id, t.created_at FROM queen.message_traces t
        WHERE t.id = n.trace_id AND t.tenant_id = $1::uuid
        OFFSET 0
    ) t
    WHERE n.trace_name = $2::text
), page AS (
    SELECT h.id, h.created_at FROM hit h ORDER BY h.created_at, h.id LIMIT $3::int8 OFFSET $4::int8
)
SELECT c.total, t.id, t.event_type, t.data_raw, t.consumer_group, t.created_at, t.transaction_id, t.partition_id,
       ARRAY(SELECT n.trace_name FROM queen.message_trace_names n WHERE n.trace_id = t.id ORDER BY n.trace_name) AS names,
       o.queue, o.partition
FROM (SELECT count(*) AS total FROM hit) c
LEFT JOIN page g ON TRUE
LEFT JOIN LATERAL (
    SELECT t.id, t.event_type, t.data_raw, t.consumer_group, t.created_at, t.transaction_id, t.partition_id
    FROM queen.message_traces t WHERE t.id = g.id
    OFFSET 0
) t ON TRUE
LEFT JOIN LATERAL (
    SELECT q.name AS queue, p.name AS partition
    FROM queen.log_partitions p
    JOIN queen.queues q ON q.id = p.queue_id AND q.tenant_id = $1::uuid
    WHERE p.id = t.partition_id
    OFFSET 0
) o ON TRUE
ORDER BY g.created_at, g.id
