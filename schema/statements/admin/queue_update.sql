-- Writes every option of one queue.
-- Caller: queen-storage admin::configure, last step of its transaction, which holds the row's lock.
-- Locks: queues, the row (held already).
-- Writes: one row of queues; no indexed column changes.
-- $1 queue id uuid, $2 name text, $3.. the options in the order of queue_create.sql
UPDATE queen.queues SET
    namespace = $3::text, task = $4::text, priority = $5::int4, lease_time = $6::int4, retry_limit = $7::int4,
    retry_delay = $8::int4, ttl = $9::int4, dead_letter_queue = $10::bool, dlq_after_max_retries = $11::bool,
    delayed_processing = $12::int4, window_buffer = $13::int4, retention_seconds = $14::int4,
    completed_retention_seconds = $15::int4, retention_enabled = $16::bool, encryption_enabled = $17::bool,
    max_wait_time_seconds = $18::int4, max_queue_size = $19::int4, min_pop_wait_time = $20::int4,
    dedup_window_seconds = $21::int4, retry_backoff = $22::text, retry_delay_max = $23::int4,
    retry_jitter = $24::float4, max_delivery_attempts = $25::int4, group_expiry_seconds = $26::int4,
    dlq_retention_seconds = $27::int4, redeliver_skipped = $28::bool, protect_leased = $29::bool
WHERE id = $1::uuid AND name = $2::text
