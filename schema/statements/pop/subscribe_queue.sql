-- The queue row that a subscription hangs on, made when a group pops a queue before its first push. The mark lets
-- cleanup tell a mistyped name from a queue that somebody configured.
-- Caller: queen-storage pop/register.rs. Locks: queues. Writes: queues.
-- $1 tenant uuid, $2 name text, $3 namespace text, $4 task text
INSERT INTO queen.queues (tenant_id, name, namespace, task, created_by)
VALUES ($1, $2, $3, $4, 'subscribe')
ON CONFLICT (tenant_id, name) DO NOTHING
