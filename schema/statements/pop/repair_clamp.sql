-- Moves cursors that lie beyond the log back to its end, which only a failover that lost commits can leave behind.
-- Whoever held a lease there loses it: its messages do not exist.
-- Caller: queen-storage pop/repair.rs, after repair_lock.sql. Locks: none beyond those held. Writes: log_consumers.
-- $1 partition uuid[], $2 group text
UPDATE queen.log_consumers c
SET committed = e.log_end, batch_end = NULL, worker_id = NULL, lease_expires_at = NULL, lease_acquired_at = NULL,
    lease_conflated = FALSE, attempt_offset = NULL, attempt_count = 0, batch_retry_count = 0, retry_offset = NULL,
    retry_at = NULL
FROM unnest($1::uuid[]) AS i (id)
CROSS JOIN LATERAL (
    SELECT GREATEST(p.last_offset,
               (SELECT s.end_offset FROM queen.log_segments s
                WHERE s.partition_id = p.id ORDER BY s.base_offset DESC LIMIT 1)) AS log_end
    FROM queen.log_partitions p WHERE p.id = i.id OFFSET 0
) e
WHERE c.partition_id = i.id AND c.consumer_group = $2 AND c.committed > e.log_end
RETURNING c.partition_id, e.log_end
