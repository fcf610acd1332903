-- Backlog of every partition of one queue as its furthest-behind view sees it: the slowest named group, else queue
-- mode, else everything retained.
-- Caller: queen-storage admin::depth without a group.
-- Locks: none. Writes: nothing.
-- No row: no such queue. One row with a NULL partition: a queue without partitions.
-- $1 tenant uuid, $2 queue name text
SELECT p.name AS partition, n.pending, LEAST(c.leased, n.pending)::int8 AS processing
FROM queen.queues q
LEFT JOIN queen.log_partitions p ON p.queue_id = q.id
LEFT JOIN LATERAL (
    SELECT s.end_offset
    FROM queen.log_segments s
    WHERE s.partition_id = p.id
    ORDER BY s.base_offset DESC
    LIMIT 1
) newest ON TRUE
CROSS JOIN LATERAL (
    SELECT
        COALESCE(
            min(c.committed) FILTER (WHERE c.consumer_group <> '__QUEUE_MODE__'), min(c.committed), -1
        ) AS worst,
        COALESCE(
            sum(c.batch_end - GREATEST(c.committed, p.log_start - 1)) FILTER (WHERE c.lease_expires_at > now()), 0
        ) AS leased
    FROM queen.log_consumers c
    WHERE c.partition_id = p.id
) c
CROSS JOIN LATERAL (
    SELECT GREATEST(
        GREATEST(p.last_offset, newest.end_offset) - GREATEST(c.worst, p.log_start - 1), 0
    ) AS pending
) n
WHERE q.tenant_id = $1::uuid AND q.name = $2::text
ORDER BY p.name COLLATE "C"
