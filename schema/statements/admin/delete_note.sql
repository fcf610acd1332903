-- Notes where logs begin of which a step left something: the end of a log can no longer be read off segments that are gone,
-- and a push must not use an offset twice.
-- Caller: queen-storage admin::delete_queue, after delete_some.sql in the same transaction. Locks: none beyond those held.
-- Writes: log_partitions.
-- $1 partition ids uuid[], $2 offset at which each begins now int8[]
WITH noted AS MATERIALIZED (
    SELECT p.address, i.start
    FROM unnest($1::uuid[], $2::int8[]) AS i (id, start)
    CROSS JOIN LATERAL (
        SELECT p.ctid AS address FROM queen.log_partitions p WHERE p.id = i.id OFFSET 0
    ) p
)
UPDATE queen.log_partitions p
SET log_start = GREATEST(p.log_start, n.start), last_offset = GREATEST(p.last_offset, n.start - 1)
FROM noted n
WHERE p.ctid = n.address
