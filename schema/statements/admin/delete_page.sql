-- The next partitions of a queue that is deleted in steps.
-- Caller: queen-storage admin::delete_queue. Locks: none. Writes: nothing.
-- $1 tenant uuid, $2 queue name text, $3 partitions beyond this id uuid
SELECT p.id
FROM queen.queues q
CROSS JOIN LATERAL (SELECT p.id FROM queen.log_partitions p WHERE p.queue_id = q.id AND p.id > $3::uuid OFFSET 0) p
WHERE q.tenant_id = $1::uuid AND q.name = $2::text
ORDER BY p.id
LIMIT 200
