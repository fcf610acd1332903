-- Deletes cursors of a group, live leases included.
-- Caller: queen-storage groups/delete.rs, which holds them. Locks: log_consumers rows (held already).
-- Writes: log_consumers.
-- $1 partition uuid[], $2 group text
DELETE FROM queen.log_consumers
WHERE partition_id = ANY ($1::uuid[]) AND consumer_group = $2::text
