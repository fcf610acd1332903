-- What retention deleted of a tenant, by bucket of time.
-- Caller: queen-storage metrics/series.rs. Locks: none. Writes: nothing.
-- $1 tenant uuid, $2 from timestamptz, $3 to timestamptz, $4 bucket seconds int8
SELECT to_timestamp(floor(extract(epoch FROM h.executed_at) / $4::int8) * $4) AS bucket,
       COALESCE(sum(h.messages_deleted) FILTER (WHERE h.retention_type = 'retention'), 0)::int8 AS age,
       COALESCE(sum(h.messages_deleted) FILTER (WHERE h.retention_type = 'completed_retention'), 0)::int8 AS completed,
       COALESCE(sum(h.messages_deleted) FILTER (WHERE h.retention_type = 'max_wait_time_eviction'), 0)::int8 AS evicted,
       count(*) AS events
FROM queen.retention_history h
WHERE h.executed_at >= $2::timestamptz AND h.executed_at <= $3::timestamptz AND h.tenant_id = $1::uuid
GROUP BY 1
ORDER BY 1
