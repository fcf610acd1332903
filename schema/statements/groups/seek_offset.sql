-- Sets the cursors of a group on some partitions to an offset, as far as the log has it, and makes those that are missing.
-- Leases and retry delays go. A cursor holds the last offset that is done: -1 replays everything retained, the largest
-- number skips everything.
-- Caller: queen-storage groups/seek.rs, after the lock statements, whose snapshot is older than what was waited for.
-- Locks: none beyond those held. Writes: log_consumers.
-- $1 partition uuid[] ascending, $2 group text, $3 offset int8
INSERT INTO queen.log_consumers AS c (partition_id, consumer_group, committed)
SELECT p.id, $2, GREATEST(LEAST($3::int8, e.log_end), p.log_start - 1)
FROM unnest($1::uuid[]) WITH ORDINALITY AS i (id, ord)
CROSS JOIN LATERAL (
    SELECT p.id, p.log_start, p.last_offset FROM queen.log_partitions p WHERE p.id = i.id OFFSET 0
) p
CROSS JOIN LATERAL (
    SELECT GREATEST(p.last_offset,
               (SELECT s.end_offset FROM queen.log_segments s
                WHERE s.partition_id = p.id ORDER BY s.base_offset DESC LIMIT 1)) AS log_end
    OFFSET 0
) e
ORDER BY i.ord
ON CONFLICT (partition_id, consumer_group) DO UPDATE SET
    committed = excluded.committed, batch_end = NULL, worker_id = NULL, lease_expires_at = NULL, lease_acquired_at = NULL,
    lease_conflated = FALSE, batch_retry_count = 0, retry_offset = NULL, retry_at = NULL, attempt_offset = NULL,
    attempt_count = 0
RETURNING c.partition_id, c.committed
