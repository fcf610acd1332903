-- Repairs of the last hour. Brokers compare them row by row with what they have applied: rows become visible in the
-- order of their commits, which is not that of their times.
-- Caller: queen-storage groups/repairs.rs. Locks: none. Writes: nothing.
SELECT r.tenant_id, r.queue_name, r.consumer_group, r.partition_name, r.repair_at
FROM queen.hotlist_repairs r
WHERE r.repair_at >= now() - interval '1 hour'
