-- Locks the dead letters of a queue, ahead of the queue itself.
-- Caller: queen-storage admin::delete_queue, first locking step of its transaction.
-- Locks: log_dlq rows of the partitions, ascending id, FOR UPDATE. A replay takes its record first, then the queue;
-- taking them in the same order here is what keeps the two from deadlocking.
-- Writes: nothing.
-- $1 partition ids uuid[]
WITH held AS MATERIALIZED (
    SELECT d.id FROM queen.log_dlq d WHERE d.partition_id = ANY ($1::uuid[]) ORDER BY d.id FOR UPDATE
)
SELECT count(*) FROM held
