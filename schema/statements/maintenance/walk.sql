-- One page of the walk that finds partitions whose notes about their oldest rows are wrong: after a crash of a broker
-- that had not noted yet, or after rows were changed by hand. A new partition's note is the moment of its creation.
-- Caller: queen-storage maintenance/marks.rs. Locks: none. Writes: nothing.
-- $1 partitions beyond this id uuid
SELECT p.id, NOT (
           CASE WHEN o.created_at IS NULL THEN p.oldest_live_at IS NULL AND p.retention_from IS NULL
                ELSE COALESCE(p.oldest_live_at <= o.created_at AND p.oldest_live_at > o.created_at - interval '1 second'
                              AND p.retention_from >= p.oldest_live_at, FALSE)
           END AND p.oldest_txn_at IS NOT DISTINCT FROM t.created_at
       ) AS wrong
FROM (
    SELECT p.id, p.oldest_live_at, p.oldest_txn_at, p.retention_from, p.log_start, p.txns_start
    FROM queen.log_partitions p
    WHERE p.id > $1::uuid
    ORDER BY p.id
    LIMIT 5000
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
ORDER BY p.id
