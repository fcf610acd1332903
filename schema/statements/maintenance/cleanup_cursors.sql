-- Locks the cursors of partitions that may be deleted: acks of them have ended or will find them gone.
-- Caller: queen-storage maintenance/cleanup.rs, which holds the partitions.
-- Locks: log_consumers of the partitions, ascending (partition_id, group), FOR UPDATE. Writes: nothing.
-- $1 partition uuid[] ascending
WITH held AS MATERIALIZED (
    SELECT c.partition_id
    FROM queen.log_consumers c
    WHERE c.partition_id = ANY ($1::uuid[])
    ORDER BY c.partition_id, c.consumer_group COLLATE "C"
    FOR UPDATE
)
SELECT count(*) FROM held
