-- Keeps partitions from being deleted while cursors on them are made. One that is being deleted is waited for.
-- Caller: queen-storage groups/seek.rs. Locks: key share on log_partitions in input order. Writes: nothing.
-- $1 partition uuid[] ascending
SELECT p.id
FROM unnest($1::uuid[]) AS i (id)
CROSS JOIN LATERAL (
    SELECT p.id FROM queen.log_partitions p WHERE p.id = i.id FOR KEY SHARE
) p
