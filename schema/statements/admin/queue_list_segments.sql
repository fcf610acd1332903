-- Number of stored segments of every queue of a tenant that has any.
-- Caller: queen-storage admin::queue_list, beside queue_list.sql.
-- Locks: none. Writes: nothing.
-- An index-only walk over the primary key of log_segments: entries are counted, rows are not read. Its cost grows with
-- the segments, so it is left out when the caller wants the cheap listing.
-- $1 tenant uuid
SELECT p.queue_id, sum(s.segments)::int8 AS segments
FROM queen.queues q
JOIN queen.log_partitions p ON p.queue_id = q.id
CROSS JOIN LATERAL (
    SELECT count(s.base_offset) AS segments FROM queen.log_segments s WHERE s.partition_id = p.id
) s
WHERE q.tenant_id = $1::uuid
GROUP BY p.queue_id
