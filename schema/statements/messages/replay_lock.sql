-- Takes one dead letter for its replay: the one of an id, else the newest of an address. Whoever waits here for another
-- replay of it finds it gone.
-- Caller: queen-storage messages/replay.rs. Locks: the log_dlq row, before anything else of the transaction.
-- Writes: nothing.
-- $1 tenant uuid, $2 record uuid (NULL: by address), $3 partition uuid, $4 transaction id text
SELECT d.id, d.partition_id, d.consumer_group, d.transaction_id, d.message_id, d.payload_raw, d.encrypted,
       d.producer_sub, d.trace_id, o.queue, o.partition
FROM queen.log_dlq d
CROSS JOIN LATERAL (
    SELECT q.name AS queue, p.name AS partition
    FROM queen.log_partitions p
    JOIN queen.queues q ON q.id = p.queue_id AND q.tenant_id = $1::uuid
    WHERE p.id = d.partition_id
    OFFSET 0
) o
WHERE d.id = COALESCE($2::uuid, (
    SELECT n.id FROM queen.log_dlq n
    WHERE n.partition_id = $3::uuid AND n.transaction_id = $4::text
    ORDER BY n.failed_at DESC, n.id
    LIMIT 1))
FOR UPDATE OF d
