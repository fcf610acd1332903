-- Queues that a discovery pop means.
-- Caller: queen-storage pop/candidates.rs. Locks: none. Writes: nothing.
-- $1 tenant uuid, $2 namespace text (NULL: any), $3 task text (NULL: any)
SELECT q.id, q.name
FROM queen.queues q
WHERE q.tenant_id = $1
  AND ($2::text IS NULL OR q.namespace = $2::text)
  AND ($3::text IS NULL OR q.task = $3::text)
ORDER BY q.id
