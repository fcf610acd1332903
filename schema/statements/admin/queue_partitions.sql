-- Every partition of one queue, by name, with its counts and the times of its oldest and newest segment.
-- Caller: queen-storage admin::queue_detail.
-- Locks: none. Writes: nothing.
-- The same counts as queue_list.sql, one row a partition: probes at both ends of the log, one index range each for the
-- cursors and the dead letters.
-- $1 tenant uuid, $2 queue name text
SELECT
    p.id, p.name, p.created_at, oldest.created_at AS oldest_at, newest.created_at AS newest_at,
    n.total, n.backlog, LEAST(c.leased, n.backlog)::int8 AS processing,
    GREATEST(n.total - n.backlog - d.dead_letter, 0) AS completed, d.dead_letter
FROM queen.queues q
JOIN queen.log_partitions p ON p.queue_id = q.id
--@ part furthest_behind
--@ part partition_counts
LEFT JOIN LATERAL (
    SELECT s.created_at
    FROM queen.log_segments s
    WHERE s.partition_id = p.id
    ORDER BY s.base_offset
    LIMIT 1
) oldest ON TRUE
WHERE q.tenant_id = $1::uuid AND q.name = $2::text
ORDER BY p.name COLLATE "C"
