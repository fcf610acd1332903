-- Tells other brokers that cursors of a group moved: one row per queue and group. A second repair that names another
-- partition widens the row to the whole queue.
-- Caller: queen-storage groups/seek.rs and groups/delete.rs, in the transaction that moves the cursors.
-- Locks: hotlist_repairs in input order. Writes: hotlist_repairs.
-- $1 tenant uuid, $2 queue name text[] ascending, $3 group text, $4 partition name text (NULL: the whole queue),
-- $5 reason text
INSERT INTO queen.hotlist_repairs AS r (tenant_id, queue_name, consumer_group, partition_name, repair_at, reason)
SELECT $1::uuid, i.name, $3::text, $4::text, clock_timestamp(), $5::text
FROM unnest($2::text[]) WITH ORDINALITY AS i (name, ord)
ORDER BY i.ord
ON CONFLICT (tenant_id, queue_name, consumer_group) DO UPDATE SET
    partition_name = CASE WHEN r.partition_name = excluded.partition_name THEN r.partition_name END,
    repair_at = excluded.repair_at,
    reason = excluded.reason
