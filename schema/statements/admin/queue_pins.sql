-- Who keeps completedRetentionSeconds of a queue from deleting what is old enough: per group the partitions whose oldest
-- segment waits for it, and when the oldest of these was stored; most partitions first. Of several groups the slowest is
-- told. A NULL group: nobody consumes these partitions. By the rules of maintenance/hold.sql: named groups decide before
-- queue mode, a registered group without a cursor owes everything, one that was not seen for groupExpirySeconds does not
-- count.
-- Caller: queen-storage admin::queue_pins. Locks: none. Writes: nothing.
-- $1 tenant uuid, $2 queue name text
SELECT s.consumer_group, count(*) AS partitions, min(o.created_at) AS oldest
FROM (
    SELECT q.id, statement_timestamp() - make_interval(secs => q.completed_retention_seconds) AS before,
           CASE WHEN q.group_expiry_seconds > 0
                THEN statement_timestamp() - make_interval(secs => q.group_expiry_seconds) END AS alive_since
    FROM queen.queues q
    WHERE q.tenant_id = $1::uuid AND q.name = $2::text AND q.retention_enabled AND q.completed_retention_seconds > 0
    OFFSET 0
) q
CROSS JOIN LATERAL (
    SELECT p.id, p.name, p.log_start
    FROM queen.log_partitions p
    WHERE p.queue_id = q.id AND p.oldest_live_at IS NOT NULL AND p.oldest_live_at < q.before
    OFFSET 0
) p
CROSS JOIN LATERAL (
    SELECT s.end_offset, s.created_at
    FROM queen.log_segments s
    WHERE s.partition_id = p.id AND s.base_offset >= p.log_start
    ORDER BY s.base_offset
    LIMIT 1
) o
LEFT JOIN LATERAL (
    SELECT k.consumer_group, k.committed
    FROM (
        SELECT c.consumer_group, c.committed,
               c.consumer_group = '__QUEUE_MODE__'
               OR q.alive_since IS NULL OR GREATEST(c.active_at, c.lease_expires_at) > q.alive_since AS counts
        FROM queen.log_consumers c
        WHERE c.partition_id = p.id
        UNION ALL
        SELECT m.consumer_group, -1, q.alive_since IS NULL OR GREATEST(m.created_at, o.created_at) > q.alive_since
        FROM queen.consumer_groups_metadata m
        WHERE m.queue_id = q.id AND m.partition_name IN ('', p.name) AND m.consumer_group <> '__QUEUE_MODE__'
          AND NOT EXISTS (
              SELECT 1 FROM queen.log_consumers c
              WHERE c.partition_id = p.id AND c.consumer_group = m.consumer_group
          )
    ) k
    WHERE k.counts
    ORDER BY k.consumer_group = '__QUEUE_MODE__', k.committed, k.consumer_group COLLATE "C"
    LIMIT 1
) s ON TRUE
WHERE o.created_at < q.before AND o.end_offset > COALESCE(s.committed, -1)
GROUP BY 1
ORDER BY 2 DESC, s.consumer_group COLLATE "C" NULLS LAST
