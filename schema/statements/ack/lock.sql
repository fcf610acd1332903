-- Locks the cursors that acks name and reads what the decision needs. A request without a row: no such cursor.
-- Caller: queen-storage ack/mod.rs and transaction.rs. Locks: log_consumers in input order (callers sort by partition,
-- then by the group's bytes). Writes: nothing.
-- $1 partition uuid[], $2 group text[]
SELECT (i.ord - 1)::int4 AS request, c.committed, c.batch_end, c.worker_id,
       COALESCE(c.lease_expires_at >= clock_timestamp(), FALSE) AS live, c.batch_retry_count, c.retry_offset,
       c.attempt_offset, c.attempt_count, c.total_consumed, q.tenant_id, q.retry_limit,
       q.dead_letter_queue OR q.dlq_after_max_retries AS dead_letters, q.retry_backoff, q.retry_delay,
       q.retry_delay_max, q.retry_jitter, q.redeliver_skipped, q.name AS queue, q.log_start
FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS i (partition_id, consumer_group, ord)
CROSS JOIN LATERAL (
    SELECT * FROM queen.log_consumers c
    WHERE c.partition_id = i.partition_id AND c.consumer_group = i.consumer_group
    FOR UPDATE
) c
CROSS JOIN LATERAL (
    SELECT q.*, p.log_start FROM queen.log_partitions p JOIN queen.queues q ON q.id = p.queue_id WHERE p.id = i.partition_id OFFSET 0
) q
