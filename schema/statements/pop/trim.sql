-- Corrects leases just taken: messages that will not be answered are handed back (the answer would exceed its byte
-- bound) or passed (their segment is undecodable and filed as dead letters). A lease that ends up covering nothing is
-- released.
-- Caller: queen-storage pop/deliver.rs, right after the claim. Locks: log_consumers in input order.
-- Writes: log_consumers.
-- $1 partition uuid[] ascending, $2 group text, $3 lease text, $4 committed at least int8[], $5 batch end at most int8[]
WITH held AS MATERIALIZED (
    SELECT i.partition_id, GREATEST(c.committed, i.committed) AS committed, LEAST(c.batch_end, i.batch_end) AS batch_end
    FROM unnest($1::uuid[], $4::int8[], $5::int8[]) AS i (partition_id, committed, batch_end)
    CROSS JOIN LATERAL (
        SELECT c.committed, c.batch_end FROM queen.log_consumers c
        WHERE c.partition_id = i.partition_id AND c.consumer_group = $2 AND c.worker_id = $3
        FOR UPDATE
    ) c
)
UPDATE queen.log_consumers c
SET committed = h.committed,
    total_consumed = c.total_consumed + h.committed - c.committed,
    batch_end = CASE WHEN h.batch_end > h.committed THEN h.batch_end END,
    worker_id = CASE WHEN h.batch_end > h.committed THEN c.worker_id END,
    lease_expires_at = CASE WHEN h.batch_end > h.committed THEN c.lease_expires_at END,
    lease_acquired_at = CASE WHEN h.batch_end > h.committed THEN c.lease_acquired_at END,
    attempt_offset = CASE WHEN h.committed > c.committed THEN h.committed + 1 ELSE c.attempt_offset END
FROM held h
WHERE c.partition_id = h.partition_id AND c.consumer_group = $2
RETURNING c.partition_id, c.batch_end
