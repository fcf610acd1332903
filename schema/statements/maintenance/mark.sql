-- Writes to partitions when their oldest segment and their oldest row of hashes were stored, as the tables have it. On
-- the work list of retention a partition does not move up.
-- Caller: queen-storage maintenance/marks.rs, after push/lock.sql in the same transaction. Locks: none beyond those
-- held. Writes: log_partitions.
-- $1 partition uuid[] ascending
WITH seen AS MATERIALIZED (
    SELECT p.address, o.created_at AS oldest, t.created_at AS oldest_txn, p.retention_from
    FROM unnest($1::uuid[]) AS i (id)
    CROSS JOIN LATERAL (
        SELECT p.id, p.ctid AS address, p.retention_from, p.log_start, p.txns_start
        FROM queen.log_partitions p
        WHERE p.id = i.id
        OFFSET 0
    ) p
    LEFT JOIN LATERAL (
        SELECT s.created_at
        FROM queen.log_segments s
        WHERE s.partition_id = p.id AND s.base_offset >= p.log_start
        ORDER BY s.base_offset
        LIMIT 1
    ) o ON TRUE
    LEFT JOIN LATERAL (
        SELECT t.created_at
        FROM queen.log_txns t
        WHERE t.partition_id = p.id AND t.base_offset >= p.txns_start
        ORDER BY t.base_offset
        LIMIT 1
    ) t ON TRUE
)
UPDATE queen.log_partitions p
SET oldest_live_at = s.oldest,
    oldest_txn_at = s.oldest_txn,
    retention_from = CASE WHEN s.oldest IS NOT NULL THEN GREATEST(s.retention_from, s.oldest) END
FROM seen s
WHERE p.ctid = s.address
