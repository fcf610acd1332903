-- Where a group begins whose registration was kept, on queues where it does not begin with everything.
-- Caller: queen-storage groups/delete.rs. Locks: none. Writes: nothing.
-- $1 tenant uuid, $2 group text, $3 queue name text (NULL: every queue)
SELECT m.queue_id, m.subscription_timestamp
FROM queen.consumer_groups_metadata m
WHERE m.tenant_id = $1::uuid AND m.consumer_group = $2::text AND m.subscription_mode <> 'all' AND m.queue_id IS NOT NULL
  AND ($3::text IS NULL
       OR m.queue_id = (SELECT q.id FROM queen.queues q WHERE q.tenant_id = $1::uuid AND q.name = $3))
