-- Deletes a queue; partitions go by cascade, what hangs on them and the subscriptions are gone before.
-- Caller: queen-storage admin::delete_queue, last step of its transaction.
-- Locks: queues and log_partitions rows (held already).
-- Writes: queues, log_partitions, consumer_groups_metadata.
-- $1 queue id uuid
DELETE FROM queen.queues WHERE id = $1::uuid
