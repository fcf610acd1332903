-- Creates the partitions that a push found missing. Speculative inserts lock in row order, hence the sort. Ids ascend with
-- time, so that whatever reads partitions in the order of their rows or names meets their segments and cursors near each
-- other (docs/decisions/015).
-- Caller: queen-storage ids.rs, after provision_queues. Locks: log_partitions by (queue, name), key share on queues.
-- Writes: log_partitions. A partition is made for a segment that follows, so it counts as holding one from now on.
-- $1 tenant uuid[], $2 queue text[], $3 partition text[], $4 id uuid[]
INSERT INTO queen.log_partitions (id, queue_id, name, created_at, last_write_at, oldest_live_at, retention_from)
SELECT i.id, q.id, i.partition, n.now, n.now, n.now, n.now
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[]) AS i (tenant, queue, partition, id)
CROSS JOIN LATERAL (
    SELECT q.id FROM queen.queues q WHERE q.tenant_id = i.tenant AND q.name = i.queue OFFSET 0
) q
CROSS JOIN (SELECT clock_timestamp() AS now) n
ORDER BY q.id, i.partition COLLATE "C"
ON CONFLICT (queue_id, name) DO NOTHING
