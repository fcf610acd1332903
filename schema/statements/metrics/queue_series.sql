-- What was counted of the queues of a tenant, by bucket of time and queue.
-- Caller: queen-storage metrics/series.rs. Locks: none. Writes: nothing.
-- $1 tenant uuid, $2 from timestamptz, $3 to timestamptz, $4 bucket seconds int8, $5 queue text or NULL,
-- $6 namespace text or NULL, $7 task text or NULL
SELECT to_timestamp(floor(extract(epoch FROM m.bucket_time) / $4::int8) * $4) AS bucket, q.name,
       sum(m.pop_count)::int8 AS pop_messages, sum(m.lag_count)::int8 AS lag_count,
       (sum(m.avg_lag_ms * m.lag_count) / GREATEST(sum(m.lag_count), 1))::int8 AS avg_lag, max(m.max_lag_ms) AS max_lag,
       sum(m.push_request_count)::int8 AS push_requests, sum(m.push_message_count)::int8 AS push_messages,
       sum(m.pop_empty_count)::int8 AS pop_empty, sum(m.ack_request_count)::int8 AS ack_requests,
       sum(m.ack_success_count)::int8 AS ack_success, sum(m.ack_failed_count)::int8 AS ack_failed,
       sum(m.transaction_count)::int8 AS transactions, sum(m.partitions_created)::int8 AS created,
       sum(m.partitions_deleted)::int8 AS deleted, max(m.partition_count) AS partitions, max(m.parked_count) AS parked
FROM queen.queue_lag_metrics m
CROSS JOIN LATERAL (
    SELECT q.name, q.namespace, q.task FROM queen.queues q WHERE q.id = m.queue_id AND q.tenant_id = $1::uuid OFFSET 0
) q
WHERE m.bucket_time >= $2::timestamptz AND m.bucket_time <= $3::timestamptz
  AND ($5::text IS NULL OR q.name = $5) AND ($6::text IS NULL OR q.namespace = $6) AND ($7::text IS NULL OR q.task = $7)
GROUP BY 1, 2
ORDER BY 1, q.name COLLATE "C"
