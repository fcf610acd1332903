-- Backlog of every partition of one queue as one group sees it; without a cursor it owes everything retained.
-- Caller: queen-storage admin::depth with a group.
-- Locks: none. Writes: nothing.
-- No row: no such queue. One row with a NULL partition: a queue without partitions.
-- $1 tenant uuid, $2 queue name text, $3 group text
SELECT p.name AS partition, n.pending, LEAST(n.leased, n.pending)::int8 AS processing
FROM queen.queues q
LEFT JOIN queen.log_partitions p ON p.queue_id = q.id
LEFT JOIN LATERAL (
    SELECT s.end_offset
    FROM queen.log_segments s
    WHERE s.partition_id = p.id
    ORDER BY s.base_offset DESC
    LIMIT 1
) newest ON TRUE
LEFT JOIN queen.log_consumers c ON c.partition_id = p.id AND c.consumer_group = $3::text
CROSS JOIN LATERAL (
    SELECT
        GREATEST(
            GREATEST(p.last_offset, newest.end_offset) - GREATEST(c.committed, -1, p.log_start - 1), 0
        ) AS pending,
        CASE WHEN c.lease_expires_at > now() THEN c.batch_end - GREATEST(c.committed, p.log_start - 1) ELSE 0
        END AS leased
) n
WHERE q.tenant_id = $1::uuid AND q.name = $2::text
ORDER BY p.name COLLATE "C"
