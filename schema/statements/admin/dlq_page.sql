-- One page of dead letters, newest failure first, and how many match in all.
-- Caller: queen-storage admin::dlq_page.
-- Locks: none. Writes: nothing.
-- Matches are found and counted by id and time; only the records of the page are read in full. The first column is
-- the total; it comes back also when the page is empty, beside a NULL id.
-- $1 tenant uuid, $2 queue text or NULL, $3 partition text or NULL, $4 group text or NULL,
-- $5 failed at or after, timestamptz or NULL, $6 failed at or before, $7 limit int8, $8 offset int8
WITH hit AS MATERIALIZED (
    SELECT d.id, d.failed_at, q.name AS queue, p.name AS partition
    FROM queen.queues q
    JOIN queen.log_partitions p ON p.queue_id = q.id
    JOIN queen.log_dlq d ON d.partition_id = p.id
    WHERE q.tenant_id = $1::uuid
        AND ($2::text IS NULL OR q.name = $2)
        AND ($3::text IS NULL OR p.name = $3)
        AND ($4::text IS NULL OR d.consumer_group = $4)
        AND ($5::timestamptz IS NULL OR d.failed_at >= $5)
        AND ($6::timestamptz IS NULL OR d.failed_at <= $6)
), page AS (
    SELECT h.id, h.failed_at, h.queue, h.partition
    FROM hit h
    ORDER BY h.failed_at DESC, h.id
    LIMIT $7::int8 OFFSET $8::int8
)
SELECT
    t.total, g.id, d.message_id, d.transaction_id, d.partition_id, g.partition, g.queue, d.consumer_group, d.error,
    d.retry_count, d.payload_raw, d.encrypted, d.producer_sub, d.trace_id, d.message_created_at, d.failed_at,
    d."offset"
FROM (SELECT count(*) AS total FROM hit) t
LEFT JOIN page g ON TRUE
LEFT JOIN queen.log_dlq d ON d.id = g.id
ORDER BY g.failed_at DESC, g.id
