-- The dead letters of a tenant in a span of time, by their error, most frequent first, and how many there are now.
-- Caller: queen-storage metrics/series.rs. Locks: none. Writes: nothing.
-- $1 tenant uuid, $2 from timestamptz, $3 to timestamptz, $4 queue text or NULL
WITH letters AS MATERIALIZED (
    SELECT d.partition_id, COALESCE(d.error, '') AS error, d.failed_at >= $2::timestamptz AND d.failed_at <= $3::timestamptz AS inside
    FROM queen.queues q
    JOIN queen.log_partitions p ON p.queue_id = q.id
    JOIN queen.log_dlq d ON d.partition_id = p.id
    WHERE q.tenant_id = $1::uuid AND ($4::text IS NULL OR q.name = $4)
), errors AS (
    SELECT l.error, count(*) AS letters FROM letters l WHERE l.inside GROUP BY l.error ORDER BY 2 DESC, 1 LIMIT 10
)
SELECT n.current, n.inside, n.partitions, e.error, e.letters
FROM (
    SELECT count(*) AS current, count(*) FILTER (WHERE l.inside) AS inside, count(DISTINCT l.partition_id) AS partitions
    FROM letters l
) n
LEFT JOIN errors e ON TRUE
ORDER BY e.letters DESC, e.error
