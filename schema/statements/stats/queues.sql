-- The stored counters of the queues of a tenant, newest queue first.
-- Caller: queen-storage stats.rs. Locks: none. Writes: nothing.
-- $1 tenant uuid, $2 queue text or NULL, $3 namespace text or NULL, $4 task text or NULL, $5 limit int8, $6 offset int8
SELECT q.id, q.name, COALESCE(q.namespace, '') AS namespace, COALESCE(q.task, '') AS task, q.created_at,
       COALESCE(t.child_count, 0) AS partitions, COALESCE(t.total_messages, 0) AS total,
       COALESCE(t.pending_messages, 0) AS pending, COALESCE(t.processing_messages, 0) AS processing,
       COALESCE(t.completed_messages, 0) AS completed, COALESCE(t.dead_letter_messages, 0) AS dead_letter,
       COALESCE(t.retained_bytes, 0) AS retained_bytes, COALESCE(t.segment_count, 0) AS segments,
       COALESCE(t.prev_completed_messages, 0) AS consumed
FROM queen.queues q
LEFT JOIN LATERAL (
    SELECT t.* FROM queen.stats t WHERE t.stat_type = 'queue' AND t.stat_key = q.id::text OFFSET 0
) t ON TRUE
WHERE q.tenant_id = $1::uuid
  AND ($2::text IS NULL OR q.name = $2)
  AND ($3::text IS NULL OR q.namespace = $3)
  AND ($4::text IS NULL OR q.task = $4)
ORDER BY q.created_at DESC, q.name COLLATE "C"
LIMIT $5::int8 OFFSET $6::int8
