-- What brokers counted, by bucket of time, over all of them.
-- Caller: queen-storage metrics/series.rs. Locks: none. Writes: nothing.
-- $1 from timestamptz, $2 to timestamptz, $3 bucket seconds int8, $4 server text or NULL, $5 worker int4 or NULL
SELECT to_timestamp(floor(extract(epoch FROM w.bucket_time) / $3::int8) * $3) AS bucket,
       avg(w.avg_event_loop_lag_ms)::int8 AS avg_loop, max(w.max_event_loop_lag_ms)::int8 AS max_loop,
       avg(w.avg_free_slots)::int8 AS avg_free, min(w.min_free_slots)::int8 AS min_free,
       max(w.db_connections)::int8 AS connections, avg(w.avg_job_queue_size)::int8 AS avg_queue,
       max(w.max_job_queue_size)::int8 AS max_queue, sum(w.jobs_done)::int8 AS jobs,
       sum(w.push_request_count)::int8 AS push_requests, sum(w.pop_request_count)::int8 AS pop_requests,
       sum(w.ack_request_count)::int8 AS ack_requests, sum(w.transaction_count)::int8 AS transactions,
       sum(w.push_message_count)::int8 AS push_messages, sum(w.pop_message_count)::int8 AS pop_messages,
       sum(w.ack_message_count)::int8 AS ack_messages, sum(w.ack_success_count)::int8 AS ack_success,
       sum(w.ack_failed_count)::int8 AS ack_failed, sum(w.lag_count)::int8 AS lag_count,
       (sum(w.avg_lag_ms * w.lag_count) / GREATEST(sum(w.lag_count), 1))::int8 AS avg_lag,
       max(w.max_lag_ms)::int8 AS max_lag, sum(w.db_error_count)::int8 AS db_errors, sum(w.dlq_count)::int8 AS dead_letters
FROM queen.worker_metrics w
WHERE w.bucket_time >= $1::timestamptz AND w.bucket_time <= $2::timestamptz
  AND ($4::text IS NULL OR w.hostname = $4) AND ($5::int4 IS NULL OR w.worker_id = $5)
GROUP BY 1
ORDER BY 1
