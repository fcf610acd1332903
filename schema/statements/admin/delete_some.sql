-- Deletes segments of partitions, oldest first, at most 10000, and notes where each log begins now. One row per partition
-- that had some: its place in the input, how many they were, and where the next step begins, so that it does not look
-- again at what this one deleted.
-- Caller: queen-storage admin::delete_queue, after delete_end.sql in the same transaction, which holds the partitions.
-- Locks: log_segments rows (leaves). Writes: log_segments, log_partitions.
-- $1 partition ids uuid[] ascending, $2 offset at which each begins int8[]
WITH doomed AS MATERIALIZED (
    SELECT i.ord, s.address, s.partition_id, s.end_offset
    FROM unnest($1::uuid[], $2::int8[]) WITH ORDINALITY AS i (id, start, ord)
    CROSS JOIN LATERAL (
        SELECT s.ctid AS address, s.partition_id, s.end_offset
        FROM queen.log_segments s
        WHERE s.partition_id = i.id AND s.base_offset >= i.start
        ORDER BY s.base_offset
        LIMIT 10000
    ) s
    LIMIT 10000
), removed AS (
    DELETE FROM queen.log_segments s USING doomed d WHERE s.ctid = d.address
), ends AS MATERIALIZED (
    SELECT d.ord, d.partition_id, count(*) AS rows, max(d.end_offset) + 1 AS start FROM doomed d GROUP BY d.ord, d.partition_id
), starts AS MATERIALIZED (
    SELECT p.address, e.start
    FROM ends e
    CROSS JOIN LATERAL (
        SELECT p.ctid AS address FROM queen.log_partitions p WHERE p.id = e.partition_id OFFSET 0
    ) p
), noted AS (
    UPDATE queen.log_partitions p
    SET log_start = GREATEST(p.log_start, s.start)
    FROM starts s
    WHERE p.ctid = s.address
)
SELECT e.ord, e.rows, e.start FROM ends e
