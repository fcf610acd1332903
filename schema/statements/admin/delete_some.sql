-- Deletes segments of partitions, oldest first, at most 10000, and notes where each log begins now.
-- Caller: queen-storage admin::delete_queue, after delete_end.sql in the same transaction, which holds the partitions.
-- Locks: log_segments rows (leaves). Writes: log_segments, log_partitions.
-- $1 partition ids uuid[] ascending
WITH doomed AS MATERIALIZED (
    SELECT s.address, s.partition_id, s.end_offset
    FROM unnest($1::uuid[]) AS i (id)
    CROSS JOIN LATERAL (
        SELECT s.ctid AS address, s.partition_id, s.end_offset
        FROM queen.log_segments s
        WHERE s.partition_id = i.id
        ORDER BY s.base_offset
        LIMIT 10000
    ) s
    LIMIT 10000
), removed AS (
    DELETE FROM queen.log_segments s USING doomed d WHERE s.ctid = d.address
), starts AS MATERIALIZED (
    SELECT p.address, d.start
    FROM (SELECT d.partition_id, max(d.end_offset) + 1 AS start FROM doomed d GROUP BY d.partition_id) d
    CROSS JOIN LATERAL (
        SELECT p.ctid AS address FROM queen.log_partitions p WHERE p.id = d.partition_id OFFSET 0
    ) p
), noted AS (
    UPDATE queen.log_partitions p
    SET log_start = GREATEST(p.log_start, s.start)
    FROM starts s
    WHERE p.ctid = s.address
)
SELECT count(*) AS rows FROM doomed
