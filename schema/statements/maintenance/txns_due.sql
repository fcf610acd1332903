-- Partitions with hashes that have outlived every window, oldest first, at most 1000 of each queue. Queues without such
-- rows are skipped over, not looked at.
-- Caller: queen-storage maintenance/retention.rs. Locks: none. Writes: nothing.
WITH RECURSIVE holding AS (
    (SELECT p.queue_id FROM queen.log_partitions p
     WHERE p.oldest_txn_at IS NOT NULL AND p.queue_id >= '00000000-0000-0000-0000-000000000000'
     ORDER BY p.queue_id, p.oldest_txn_at LIMIT 1)
    UNION ALL
    SELECT (
        SELECT p.queue_id FROM queen.log_partitions p
        WHERE p.oldest_txn_at IS NOT NULL AND p.queue_id > h.queue_id
        ORDER BY p.queue_id, p.oldest_txn_at LIMIT 1
    )
    FROM holding h
    WHERE h.queue_id IS NOT NULL
)
SELECT d.id AS partition_id
FROM holding h
CROSS JOIN LATERAL (
    SELECT q.dedup_window_seconds, q.completed_retention_seconds FROM queen.queues q WHERE q.id = h.queue_id OFFSET 0
) q
CROSS JOIN LATERAL (
    SELECT p.id
    FROM queen.log_partitions p
    WHERE p.queue_id = h.queue_id AND p.oldest_txn_at IS NOT NULL AND p.oldest_txn_at < statement_timestamp()
          - make_interval(secs => GREATEST(q.dedup_window_seconds, q.completed_retention_seconds, 900))
    ORDER BY p.oldest_txn_at
    LIMIT 1000
) d
