-- Whether a queue is large: counts its partitions and segments, and stops when there are many.
-- Caller: queen-storage admin::delete_queue. Locks: none. Writes: nothing.
-- $1 tenant uuid, $2 queue name text
WITH part AS MATERIALIZED (
    SELECT p.id
    FROM queen.queues q
    CROSS JOIN LATERAL (SELECT p.id FROM queen.log_partitions p WHERE p.queue_id = q.id LIMIT 1001) p
    WHERE q.tenant_id = $1::uuid AND q.name = $2::text
)
SELECT (SELECT count(*) FROM part) AS partitions,
       (SELECT count(*) FROM (
           SELECT 1
           FROM part p
           CROSS JOIN LATERAL (
               SELECT s.base_offset FROM queen.log_segments s WHERE s.partition_id = p.id LIMIT 10001
           ) s
           LIMIT 10001
       ) n) AS segments
