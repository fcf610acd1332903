-- Locks a queue for deletion: no partition can be added from here on.
-- Caller: queen-storage admin::delete_queue, second step of its transaction.
-- Locks: queues, one row FOR UPDATE; waits for transactions that are adding partitions or subscriptions to it.
-- Writes: nothing.
-- $1 tenant uuid, $2 queue name text
SELECT q.id FROM queen.queues q WHERE q.tenant_id = $1::uuid AND q.name = $2::text FOR UPDATE
