-- The stored subscription of a group on a queue.
-- Caller: queen-storage pop/register.rs. Locks: none. Writes: nothing.
-- $1 tenant uuid, $2 group text, $3 queue uuid
SELECT subscription_mode, subscription_timestamp
FROM queen.consumer_groups_metadata
WHERE tenant_id = $1 AND consumer_group = $2
  AND COALESCE(queue_id, '00000000-0000-0000-0000-000000000000'::uuid) = $3
  AND partition_name = '' AND namespace = '' AND task = ''
