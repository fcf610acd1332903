-- The work list of retention: partitions whose oldest segment is older than the shortest window of their queue, oldest
-- first, at most 1000 of each queue. Its cost follows what is on it, not how many partitions there are. The next page of
-- a queue begins where the last one ended: what was on that one stands further back now, and left dead entries in front.
-- Caller: queen-storage maintenance/retention.rs. Locks: none. Writes: nothing.
-- $1 queue uuid[], $2 where its last page ended timestamptz[]
SELECT d.id AS partition_id, q.id AS queue_id, d.retention_from, statement_timestamp() AS now
FROM queen.queues q
LEFT JOIN unnest($1::uuid[], $2::timestamptz[]) AS i (queue_id, since) ON i.queue_id = q.id
CROSS JOIN LATERAL (
    SELECT p.id, p.retention_from
    FROM queen.log_partitions p
    WHERE p.queue_id = q.id AND p.retention_from IS NOT NULL
      AND p.retention_from >= COALESCE(i.since, '-infinity')
      AND p.retention_from < statement_timestamp() - make_interval(secs => LEAST(
          CASE WHEN q.retention_enabled AND q.retention_seconds > 0 THEN q.retention_seconds END,
          CASE WHEN q.retention_enabled AND q.completed_retention_seconds > 0 THEN q.completed_retention_seconds END,
          CASE WHEN q.max_wait_time_seconds > 0 THEN q.max_wait_time_seconds END
      ))
    ORDER BY p.retention_from
    LIMIT 1000
) d
WHERE q.retention_enabled AND (q.retention_seconds > 0 OR q.completed_retention_seconds > 0) OR q.max_wait_time_seconds > 0
