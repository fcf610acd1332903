-- Deletes the cursors of a queue; no foreign key does it.
-- Caller: queen-storage admin::delete_queue, which holds them.
-- Locks: log_consumers rows (held already). Writes: log_consumers.
-- $1 partition ids uuid[]
DELETE FROM queen.log_consumers
WHERE partition_id = ANY ($1::uuid[])
