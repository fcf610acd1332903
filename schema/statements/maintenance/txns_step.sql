-- Deletes the oldest hashes of one partition that have outlived every window, at most so many. Nothing below txns_start
-- is looked at: there are the dead index entries of the steps before this one, as long as some transaction keeps them.
-- Caller: queen-storage maintenance/retention.rs, after push/lock.sql in the same transaction.
-- Locks: none beyond the partition, which is held. Writes: log_txns, log_partitions.
-- $1 partition uuid, $2 rows int8, $3 do not wait for the disk boolean
WITH home AS MATERIALIZED (
    SELECT p.address, p.txns_start, statement_timestamp()
               - make_interval(secs => GREATEST(q.dedup_window_seconds, q.completed_retention_seconds, 900)) AS before
    FROM (SELECT p.ctid AS address, p.queue_id, p.txns_start FROM queen.log_partitions p WHERE p.id = $1::uuid OFFSET 0) p
    CROSS JOIN LATERAL (
        SELECT q.dedup_window_seconds, q.completed_retention_seconds FROM queen.queues q WHERE q.id = p.queue_id OFFSET 0
    ) q
), cut AS MATERIALIZED (
    SELECT count(*) AS rows, max(t.base_offset) AS base_offset, max(t.end_offset) AS end_offset
    FROM home h
    CROSS JOIN LATERAL (
        SELECT t.base_offset, t.end_offset, t.created_at
        FROM queen.log_txns t
        WHERE t.partition_id = $1 AND t.base_offset >= h.txns_start
        ORDER BY t.base_offset
        LIMIT $2::int8
    ) t
    WHERE t.created_at < h.before
), next AS MATERIALIZED (
    SELECT t.created_at
    FROM queen.log_txns t
    WHERE t.partition_id = $1 AND t.base_offset > COALESCE((SELECT c.base_offset FROM cut c), (SELECT h.txns_start - 1 FROM home h))
    ORDER BY t.base_offset
    LIMIT 1
), removed AS (
    DELETE FROM queen.log_txns t
    WHERE t.partition_id = $1
      AND t.base_offset >= (SELECT h.txns_start FROM home h) AND t.base_offset <= (SELECT c.base_offset FROM cut c)
), kept AS (
    UPDATE queen.log_partitions p
    SET txns_start = GREATEST(p.txns_start, c.end_offset + 1), oldest_txn_at = (SELECT n.created_at FROM next n)
    FROM home h, cut c
    WHERE p.ctid = h.address
)
SELECT c.rows, CASE WHEN $3::boolean THEN (SELECT set_config('synchronous_commit', 'off', TRUE)) END AS relaxed
FROM cut c
