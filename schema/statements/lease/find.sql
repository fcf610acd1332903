-- Finds the partitions of a lease that another broker issued. No index serves it (it would break HOT updates on the
-- hottest rows), so the caller limits how often it runs.
-- Caller: queen-storage lease.rs. Locks: none. Writes: nothing.
-- $1 lease text, $2 tenant uuid
SELECT c.partition_id, c.consumer_group
FROM queen.log_consumers c
JOIN queen.log_partitions p ON p.id = c.partition_id
JOIN queen.queues q ON q.id = p.queue_id AND q.tenant_id = $2
WHERE c.worker_id = $1 AND c.lease_expires_at >= clock_timestamp()
ORDER BY c.partition_id
