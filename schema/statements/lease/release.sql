-- Gives back a lease that nobody holds: its answer was never written. The delivery
-- does not count: the next one has the same number.
-- Caller: queen-storage lease.rs. Locks: log_consumers in input order. Writes: log_consumers.
-- $1 partition uuid[] ascending, $2 group text, $3 lease text
WITH held AS MATERIALIZED (
    SELECT c.partition_id
    FROM unnest($1::uuid[]) AS i (id)
    CROSS JOIN LATERAL (
        SELECT c.partition_id FROM queen.log_consumers c
        WHERE c.partition_id = i.id AND c.consumer_group = $2 AND c.worker_id = $3
        FOR UPDATE
    ) c
)
UPDATE queen.log_consumers c
SET worker_id = NULL, batch_end = NULL, lease_expires_at = NULL, lease_acquired_at = NULL, lease_conflated = FALSE,
    attempt_count = GREATEST(c.attempt_count - 1, 0)
FROM held h
WHERE c.partition_id = h.partition_id AND c.consumer_group = $2
RETURNING c.partition_id
