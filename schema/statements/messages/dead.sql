-- Offsets of some partitions that have a dead letter of any group.
-- Caller: queen-storage messages/standing.rs. Locks: none. Writes: nothing.
-- $1 partition uuid[], $2 lowest offset int8[], $3 highest offset int8[]
SELECT i.id AS partition_id, d.at
FROM unnest($1::uuid[], $2::int8[], $3::int8[]) AS i (id, low, high)
CROSS JOIN LATERAL (
    SELECT d."offset" AS at FROM queen.log_dlq d
    WHERE d.partition_id = i.id AND d."offset" BETWEEN i.low AND i.high
    OFFSET 0
) d
