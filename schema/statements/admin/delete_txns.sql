-- Deletes the hashes of a queue that outlived their segments; no foreign key does it.
-- Caller: queen-storage admin::delete_queue, which holds the queue, its partitions and its cursors.
-- Locks: log_txns rows (leaves). Writes: log_txns.
-- $1 partition ids uuid[]
DELETE FROM queen.log_txns
WHERE partition_id = ANY ($1::uuid[])
