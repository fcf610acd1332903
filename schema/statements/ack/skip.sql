-- Moves cursors past messages that can never be delivered (an undecodable segment), once they are filed as dead
-- letters: only if the lease that met them still stands at its start.
-- Caller: queen-storage pop/damage.rs. Locks: log_consumers. Writes: log_consumers.
-- $1 partition uuid, $2 group text, $3 worker text (NULL: the claim was committed at once), $4 last lost offset int8
UPDATE queen.log_consumers c
SET committed = GREATEST(c.committed, $4),
    batch_end = CASE WHEN c.batch_end <= $4 THEN NULL ELSE c.batch_end END,
    worker_id = CASE WHEN c.batch_end <= $4 THEN NULL ELSE c.worker_id END,
    lease_expires_at = CASE WHEN c.batch_end <= $4 THEN NULL ELSE c.lease_expires_at END,
    lease_acquired_at = CASE WHEN c.batch_end <= $4 THEN NULL ELSE c.lease_acquired_at END,
    total_consumed = c.total_consumed + GREATEST($4 - c.committed, 0)
WHERE c.partition_id = $1 AND c.consumer_group = $2 AND ($3::text IS NULL OR c.worker_id = $3::text)
RETURNING c.committed
