-- Where a group has cursors: partition and queue, ascending by partition.
-- Caller: queen-storage groups/delete.rs. Locks: none. Writes: nothing.
-- $1 tenant uuid, $2 group text, $3 queue name text (NULL: every queue)
SELECT p.id, q.name AS queue
FROM queen.queues q
CROSS JOIN LATERAL (
    SELECT p.id FROM queen.log_partitions p WHERE p.queue_id = q.id OFFSET 0
) p
CROSS JOIN LATERAL (
    SELECT TRUE AS there FROM queen.log_consumers c WHERE c.partition_id = p.id AND c.consumer_group = $2::text OFFSET 0
) c
WHERE q.tenant_id = $1::uuid AND ($3::text IS NULL OR q.name = $3)
ORDER BY p.id
