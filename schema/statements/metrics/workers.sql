-- The brokers that counted something in a span of time, with their latest numbers.
-- Caller: queen-storage metrics/series.rs. Locks: none. Writes: nothing.
-- $1 from timestamptz, $2 to timestamptz, $3 server text or NULL, $4 worker int4 or NULL
SELECT w.hostname, w.worker_id, avg(w.avg_event_loop_lag_ms)::int8 AS avg_loop,
       max(w.max_event_loop_lag_ms)::int8 AS max_loop,
       (array_agg(w.avg_free_slots ORDER BY w.bucket_time DESC))[1]::int8 AS free_slots,
       (array_agg(w.db_connections ORDER BY w.bucket_time DESC))[1]::int8 AS connections,
       (array_agg(w.avg_job_queue_size ORDER BY w.bucket_time DESC))[1]::int8 AS queue_size,
       sum(w.push_message_count + w.pop_message_count + w.ack_message_count)::int8 AS messages,
       max(w.bucket_time) AS last_seen
FROM queen.worker_metrics w
WHERE w.bucket_time >= $1::timestamptz AND w.bucket_time <= $2::timestamptz
  AND ($3::text IS NULL OR w.hostname = $3) AND ($4::int4 IS NULL OR w.worker_id = $4)
GROUP BY w.hostname, w.worker_id
ORDER BY w.hostname COLLATE "C", w.worker_id
