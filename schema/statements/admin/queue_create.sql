-- Creates a queue with the options of a configure call, unless it exists.
-- Caller: queen-storage admin::configure, first step of its transaction.
-- Locks: queues, the new row alone (an existing row is not locked here). A concurrent creation of the same name is
-- waited for; the loser inserts nothing.
-- Writes: at most one row of queues.
-- $1 tenant uuid, $2 name text, $3.. the options in column order
INSERT INTO queen.queues (
    tenant_id, name, namespace, task, priority, lease_time, retry_limit, retry_delay, ttl, dead_letter_queue,
    dlq_after_max_retries, delayed_processing, window_buffer, retention_seconds, completed_retention_seconds,
    retention_enabled, encryption_enabled, max_wait_time_seconds, max_queue_size, min_pop_wait_time,
    dedup_window_seconds, retry_backoff, retry_delay_max, retry_jitter, max_delivery_attempts, group_expiry_seconds,
    dlq_retention_seconds, redeliver_skipped, protect_leased, created_by
) VALUES (
    $1::uuid, $2::text, $3::text, $4::text, $5::int4, $6::int4, $7::int4, $8::int4, $9::int4, $10::bool, $11::bool,
    $12::int4, $13::int4, $14::int4, $15::int4, $16::bool, $17::bool, $18::int4, $19::int4, $20::int4, $21::int4,
    $22::text, $23::int4, $24::float4, $25::int4, $26::int4, $27::int4, $28::bool, $29::bool, 'configure'
)
ON CONFLICT (tenant_id, name) DO NOTHING
RETURNING id
