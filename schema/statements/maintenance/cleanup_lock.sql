-- Locks partitions that may be deleted; whatever somebody holds is left out.
-- Caller: queen-storage maintenance/cleanup.rs. Locks: log_partitions ascending by id, FOR UPDATE SKIP LOCKED.
-- Writes: nothing.
-- $1 partition uuid[] ascending
SELECT p.id
FROM unnest($1::uuid[]) AS i (id)
CROSS JOIN LATERAL (
    SELECT p.id FROM queen.log_partitions p WHERE p.id = i.id FOR UPDATE SKIP LOCKED
) p
