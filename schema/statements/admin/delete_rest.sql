-- Deletes the segments that came to partitions after the steps over them.
-- Caller: queen-storage admin::delete_queue, which holds the partitions and their cursors.
-- Locks: log_segments rows (leaves). Writes: log_segments.
-- $1 partition ids uuid[], $2 offset at which each begins int8[]
WITH doomed AS MATERIALIZED (
    SELECT s.address
    FROM unnest($1::uuid[], $2::int8[]) AS i (id, start)
    CROSS JOIN LATERAL (
        SELECT s.ctid AS address
        FROM queen.log_segments s
        WHERE s.partition_id = i.id AND s.base_offset >= i.start
        OFFSET 0
    ) s
)
DELETE FROM queen.log_segments s USING doomed d WHERE s.ctid = d.address
