-- Reads one queue under a lock that serialises edits of it, until the transaction ends.
-- Caller: queen-storage admin::configure, second step of its transaction.
-- Locks: queues, one row FOR NO KEY UPDATE: edits and a deletion wait for each other, while the key-share locks of
-- new partitions and subscriptions do not wait for an edit.
-- Writes: nothing.
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
FOR NO KEY UPDATE
