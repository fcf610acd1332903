-- Deletes the subscriptions of a queue, ahead of the cascade: whoever deletes a group holds its subscriptions before its
-- cursors, so they come before cursors here too.
-- Caller: queen-storage admin::delete_queue, which holds the queue and its partitions.
-- Locks: consumer_groups_metadata rows of the queue, ascending by id. Writes: consumer_groups_metadata.
-- $1 queue id uuid
WITH held AS MATERIALIZED (
    SELECT m.id FROM queen.consumer_groups_metadata m WHERE m.queue_id = $1::uuid ORDER BY m.id FOR UPDATE
)
DELETE FROM queen.consumer_groups_metadata m USING held h WHERE m.id = h.id
