-- Locks the cursors of a queue: acks of them have ended or will find them gone.
-- Caller: queen-storage admin::delete_queue, which holds the queue and its partitions.
-- Locks: log_consumers of the partitions, ascending (partition_id, group), FOR UPDATE.
-- Writes: nothing.
-- $1 partition ids uuid[]
WITH held AS MATERIALIZED (
    SELECT c.partition_id
    FROM queen.log_consumers c
    WHERE c.partition_id = ANY ($1::uuid[])
    ORDER BY c.partition_id, c.consumer_group COLLATE "C"
    FOR UPDATE
)
SELECT count(*) FROM held
