-- Creates the queues that a push found missing, with the column defaults.
-- Caller: queen-storage ids.rs, before provision_partitions. Locks: queues by (tenant, name). Writes: queues.
-- $1 tenant uuid[], $2 name text[], $3 namespace text[], $4 task text[], $5 created_by text
INSERT INTO queen.queues (tenant_id, name, namespace, task, created_by)
SELECT i.tenant, i.name, i.namespace, i.task, $5
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) AS i (tenant, name, namespace, task)
ORDER BY i.tenant, i.name COLLATE "C"
ON CONFLICT (tenant_id, name) DO NOTHING
