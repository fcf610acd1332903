-- Adds the stored bytes of the queues up to those of their tenants, and of all.
-- Caller: queen-storage stats.rs, after bytes.sql for every queue. Locks: stats by key. Writes: stats.
INSERT INTO queen.stats AS t (stat_type, stat_key, tenant_id, retained_bytes, segment_count, last_computed_at)
SELECT 'system', COALESCE(s.tenant_id::text, 'global'), s.tenant_id, COALESCE(sum(s.retained_bytes), 0)::int8,
       COALESCE(sum(s.segment_count), 0)::int8, now()
FROM queen.stats s
WHERE s.stat_type = 'queue'
GROUP BY GROUPING SETS ((s.tenant_id), ())
ORDER BY 2
ON CONFLICT (stat_type, stat_key) DO UPDATE SET
    retained_bytes = excluded.retained_bytes, segment_count = excluded.segment_count
