-- Number and bytes of the stored segments of one queue.
-- Caller: queen-storage admin::queue_detail.
-- Locks: none. Writes: nothing.
-- octet_length reads the length in the row's pointer, not the blob; still every segment row is visited, which is why
-- only the detail of a single queue asks for it.
-- $1 tenant uuid, $2 queue name text
SELECT
    COALESCE(sum(s.segments), 0)::int8 AS segments,
    COALESCE(sum(s.bytes), 0)::int8 AS bytes
FROM queen.queues q
JOIN queen.log_partitions p ON p.queue_id = q.id
CROSS JOIN LATERAL (
    SELECT count(*) AS segments, sum(octet_length(s.blob)) AS bytes
    FROM queen.log_segments s
    WHERE s.partition_id = p.id
) s
WHERE q.tenant_id = $1::uuid AND q.name = $2::text
