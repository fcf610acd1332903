-- The counters of one tenant, how many queues, partitions, namespaces and tasks it has, and how old that is.
-- Caller: queen-storage stats.rs. Locks: none. Writes: nothing.
-- $1 tenant uuid
SELECT n.queues, n.partitions, n.namespaces, n.tasks, COALESCE(t.total_messages, 0) AS total,
       COALESCE(t.pending_messages, 0) AS pending, COALESCE(t.processing_messages, 0) AS processing,
       COALESCE(t.completed_messages, 0) AS completed, COALESCE(t.dead_letter_messages, 0) AS dead_letter,
       COALESCE(t.retained_bytes, 0) AS retained_bytes, t.avg_lag_seconds AS avg_lag, t.median_lag_seconds AS median_lag,
       t.min_lag_seconds AS min_lag, t.max_lag_seconds AS max_lag, t.avg_offset_lag AS avg_offset,
       t.median_offset_lag AS median_offset, t.min_offset_lag AS min_offset, t.max_offset_lag AS max_offset,
       t.ingested_per_second::float8 AS ingested, t.processed_per_second::float8 AS processed, now() AS now,
       extract(epoch FROM clock_timestamp() - t.last_computed_at)::int8 AS age
FROM (
    SELECT count(*) FILTER (WHERE s.stat_type = 'queue') AS queues,
           COALESCE(sum(s.child_count) FILTER (WHERE s.stat_type = 'queue'), 0)::int8 AS partitions,
           count(*) FILTER (WHERE s.stat_type = 'namespace') AS namespaces,
           count(*) FILTER (WHERE s.stat_type = 'task') AS tasks
    FROM queen.stats s
    WHERE s.tenant_id = $1::uuid
) n
LEFT JOIN queen.stats t ON t.stat_type = 'system' AND t.stat_key = $1::uuid::text
