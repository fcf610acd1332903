-- Notes where the logs of partitions end, before segments of them are deleted: the end can no longer be read off them
-- afterwards, and a push must not use an offset twice.
-- Caller: queen-storage admin::delete_queue, after push/lock.sql in the same transaction. Locks: none beyond those held.
-- Writes: log_partitions.
-- $1 partition ids uuid[] ascending
WITH ends AS MATERIALIZED (
    SELECT p.address, newest.end_offset
    FROM unnest($1::uuid[]) AS i (id)
    CROSS JOIN LATERAL (
        SELECT p.id, p.ctid AS address, p.log_start FROM queen.log_partitions p WHERE p.id = i.id OFFSET 0
    ) p
    CROSS JOIN LATERAL (
        -- Below are only dead index entries, of steps before this one.
        SELECT s.end_offset
        FROM queen.log_segments s
        WHERE s.partition_id = p.id AND s.base_offset >= p.log_start
        ORDER BY s.base_offset DESC
        LIMIT 1
    ) newest
)
UPDATE queen.log_partitions p
SET last_offset = GREATEST(p.last_offset, e.end_offset)
FROM ends e
WHERE p.ctid = e.address
