-- Reads one queue: its id, identity and every option.
-- Caller: queen-storage admin::load_queue, admin::queue_detail.
-- Locks: none. Writes: nothing.
-- $1 tenant uuid, $2 name text
SELECT
    q.id, q.namespace, q.task, q.priority, q.lease_time, q.retry_limit, q.retry_delay, q.ttl, q.dead_letter_queue,
    q.dlq_after_max_retries, q.delayed_processing, q.window_buffer, q.retention_seconds,
    q.completed_retention_seconds, q.retention_enabled, q.encryption_enabled, q.max_wait_time_seconds,
    q.max_queue_size, q.min_pop_wait_time, q.dedup_window_seconds, q.retry_backoff, q.retry_delay_max,
    q.retry_jitter, q.max_delivery_attempts, q.group_expiry_seconds, q.dlq_retention_seconds, q.redeliver_skipped,
    q.protect_leased, q.created_at
FROM queen.queues q
WHERE q.tenant_id = $1::uuid AND q.name = $2::text
