-- Counts the stored segments and bytes of one queue and notes them. octet_length reads the length in the row's pointer,
-- not the blob; still every segment row is visited, which is why this runs rarely.
-- Caller: queen-storage stats.rs. Locks: stats, one row. Writes: stats.
-- $1 queue id uuid
INSERT INTO queen.stats AS t (stat_type, stat_key, tenant_id, queue_id, retained_bytes, segment_count, last_computed_at)
SELECT 'queue', q.id::text, q.tenant_id, q.id, s.bytes, s.segments, now()
FROM (SELECT q.id, q.tenant_id FROM queen.queues q WHERE q.id = $1::uuid OFFSET 0) q
CROSS JOIN LATERAL (
    SELECT COALESCE(sum(s.segments), 0)::int8 AS segments, COALESCE(sum(s.bytes), 0)::int8 AS bytes
    FROM (SELECT p.id FROM queen.log_partitions p WHERE p.queue_id = q.id OFFSET 0) p
    CROSS JOIN LATERAL (
        SELECT count(*) AS segments, sum(octet_length(s.blob)) AS bytes
        FROM queen.log_segments s
        WHERE s.partition_id = p.id
    ) s
) s
ON CONFLICT (stat_type, stat_key) DO UPDATE SET
    retained_bytes = excluded.retained_bytes, segment_count = excluded.segment_count
