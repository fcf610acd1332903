-- Deletes the messages of a queue; no foreign key does it.
-- Caller: queen-storage admin::delete_queue, which holds the queue, its partitions and its cursors.
-- Locks: log_segments rows (leaves). Writes: log_segments.
-- $1 partition ids uuid[]
DELETE FROM queen.log_segments
WHERE partition_id = ANY ($1::uuid[])
