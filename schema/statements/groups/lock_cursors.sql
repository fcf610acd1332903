-- Locks the cursors of a group on some partitions: what holds one ends first.
-- Caller: queen-storage groups/seek.rs and groups/delete.rs. Locks: log_consumers in input order. Writes: nothing.
-- $1 partition uuid[] ascending, $2 group text
SELECT c.partition_id
FROM unnest($1::uuid[]) AS i (id)
CROSS JOIN LATERAL (
    SELECT c.partition_id FROM queen.log_consumers c
    WHERE c.partition_id = i.id AND c.consumer_group = $2 FOR UPDATE
) c
