-- The newest dead letter of an address, of any group.
-- Caller: queen-storage messages/detail.rs, which knows that the partition is the tenant's. Locks: none. Writes: nothing.
-- $1 partition uuid, $2 transaction id text
SELECT d.message_id, d.payload_raw, d.encrypted, d.producer_sub, d.trace_id, d.error, d.retry_count,
       d.message_created_at, d.failed_at, d."offset"
FROM queen.log_dlq d
WHERE d.partition_id = $1::uuid AND d.transaction_id = $2::text
ORDER BY d.failed_at DESC, d.id
LIMIT 1
