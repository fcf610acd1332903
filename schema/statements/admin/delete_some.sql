-- Deletes segments of partitions, oldest first, at most 10000. One row per partition that had some: its place in the
-- input, how many they were, and where the next step begins, so that it does not look again at what this one deleted.
-- Caller: queen-storage admin::delete_queue, which holds the partitions and their cursors.
-- Locks: log_segments rows (leaves). Writes: log_segments.
-- $1 partition ids uuid[] ascending, $2 offset at which each begins int8[]
WITH doomed AS MATERIALIZED (
    SELECT i.ord, s.address, s.end_offset
    FROM unnest($1::uuid[], $2::int8[]) WITH ORDINALITY AS i (id, start, ord)
    CROSS JOIN LATERAL (
        SELECT s.ctid AS address, s.end_offset
        FROM queen.log_segments s
        WHERE s.partition_id = i.id AND s.base_offset >= i.start
        ORDER BY s.base_offset
        LIMIT 10000
    ) s
    LIMIT 10000
), removed AS (
    DELETE FROM queen.log_segments s USING doomed d WHERE s.ctid = d.address
)
SELECT d.ord, count(*) AS rows, max(d.end_offset) + 1 AS start FROM doomed d GROUP BY d.ord
