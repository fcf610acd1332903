-- Deletes the dead letters of a queue; no foreign key does it.
-- Caller: queen-storage admin::delete_queue, which holds the queue, its partitions and its cursors.
-- Locks: log_dlq rows, held already but for those filed since the first step. A record that a replay holds is
-- skipped: that replay waits for the queue and takes its record away itself.
-- Writes: log_dlq.
-- $1 partition ids uuid[]
DELETE FROM queen.log_dlq
WHERE id = ANY (ARRAY (
    SELECT d.id FROM queen.log_dlq d WHERE d.partition_id = ANY ($1::uuid[]) FOR UPDATE SKIP LOCKED
))
