-- Partitions whose oldest dead letter has outlived its queue's dlqRetentionSeconds. Steps from one partition with dead
-- letters to the next; nothing is done while no queue has the option.
-- Caller: queen-storage maintenance/cleanup.rs. Locks: none. Writes: nothing.
WITH RECURSIVE holding AS (
    (SELECT d.partition_id FROM queen.log_dlq d
     WHERE d.partition_id >= '00000000-0000-0000-0000-000000000000'
       AND EXISTS (SELECT 1 FROM queen.queues q WHERE q.dlq_retention_seconds > 0)
     ORDER BY d.partition_id, d.failed_at DESC LIMIT 1)
    UNION ALL
    SELECT (
        SELECT d.partition_id FROM queen.log_dlq d
        WHERE d.partition_id > h.partition_id
        ORDER BY d.partition_id, d.failed_at DESC LIMIT 1
    )
    FROM holding h
    WHERE h.partition_id IS NOT NULL
)
SELECT h.partition_id, q.before
FROM holding h
CROSS JOIN LATERAL (
    SELECT p.queue_id FROM queen.log_partitions p WHERE p.id = h.partition_id OFFSET 0
) p
CROSS JOIN LATERAL (
    SELECT statement_timestamp() - make_interval(secs => q.dlq_retention_seconds) AS before
    FROM queen.queues q
    WHERE q.id = p.queue_id AND q.dlq_retention_seconds > 0
    OFFSET 0
) q
CROSS JOIN LATERAL (
    SELECT 1 FROM queen.log_dlq d WHERE d.partition_id = h.partition_id AND d.failed_at < q.before LIMIT 1
) d
LIMIT 1000
