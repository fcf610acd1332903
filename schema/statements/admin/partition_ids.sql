-- Ids of the partitions of one queue.
-- Caller: queen-storage admin::partition_ids_of_queue; admin::delete_queue, to find the dead letters to lock.
-- Locks: none. Writes: nothing.
-- $1 tenant uuid, $2 queue name text
SELECT p.id
FROM queen.queues q
JOIN queen.log_partitions p ON p.queue_id = q.id
WHERE q.tenant_id = $1::uuid AND q.name = $2::text
ORDER BY p.id
