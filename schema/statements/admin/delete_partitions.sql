-- Deletes partitions whose rows are gone already.
-- Caller: queen-storage admin::delete_queue, which holds them. Locks: none beyond those held. Writes: log_partitions.
-- $1 partition ids uuid[]
DELETE FROM queen.log_partitions WHERE id = ANY ($1::uuid[])
