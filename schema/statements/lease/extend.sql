-- Extends the live leases of one claim on partitions that the broker knows it covers. Never shortens one.
-- Caller: queen-storage lease.rs. Locks: log_consumers in input order. Writes: log_consumers.
-- $1 partition uuid[] ascending, $2 group text, $3 lease text, $4 seconds int8
WITH held AS MATERIALIZED (
    SELECT c.partition_id
    FROM unnest($1::uuid[]) AS i (id)
    CROSS JOIN LATERAL (
        SELECT c.partition_id FROM queen.log_consumers c
        WHERE c.partition_id = i.id AND c.consumer_group = $2 AND c.worker_id = $3
          AND c.lease_expires_at >= clock_timestamp()
        FOR UPDATE
    ) c
)
UPDATE queen.log_consumers c
SET lease_expires_at = GREATEST(c.lease_expires_at, clock_timestamp() + make_interval(secs => $4::int8::double precision))
FROM held h
WHERE c.partition_id = h.partition_id AND c.consumer_group = $2
RETURNING c.partition_id, c.ctid, c.lease_expires_at
