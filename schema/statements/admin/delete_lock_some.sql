-- Locks partitions of a queue that is deleted in steps.
-- Caller: queen-storage admin::delete_queue. Locks: log_partitions ascending by id, FOR UPDATE. Writes: nothing.
-- $1 partition ids uuid[] ascending
SELECT p.id
FROM unnest($1::uuid[]) AS i (id)
CROSS JOIN LATERAL (SELECT p.id FROM queen.log_partitions p WHERE p.id = i.id FOR UPDATE) p
