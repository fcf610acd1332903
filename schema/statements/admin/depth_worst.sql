-- Backlog of every partition of one queue as its furthest-behind view sees it: the slowest named group, else queue
-- mode, else everything retained.
-- Caller: queen-storage admin::depth without a group.
-- Locks: none. Writes: nothing.
-- No row: no such queue. One row with a NULL partition: a queue without partitions.
-- $1 tenant uuid, $2 queue name text
SELECT p.name AS partition, n.pending, LEAST(c.leased, n.pending)::int8 AS processing
FROM queen.queues q
LEFT JOIN queen.log_partitions p ON p.queue_id = q.id
--@ part furthest_behind
CROSS JOIN LATERAL (
    SELECT GREATEST(
        GREATEST(p.last_offset, newest.end_offset) - GREATEST(c.worst, p.log_start - 1), 0
    ) AS pending
) n
WHERE q.tenant_id = $1::uuid AND q.name = $2::text
ORDER BY p.name COLLATE "C"
