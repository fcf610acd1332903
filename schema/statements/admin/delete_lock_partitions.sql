-- Locks the partitions of a queue and returns their ids: pushes to them have ended or will find them gone.
-- Caller: queen-storage admin::delete_queue, which holds the queue's row.
-- Locks: log_partitions of the queue, ascending id, FOR UPDATE.
-- Writes: nothing.
-- $1 queue id uuid
SELECT p.id FROM queen.log_partitions p WHERE p.queue_id = $1::uuid ORDER BY p.id FOR UPDATE
