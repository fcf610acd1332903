-- The next partitions of a queue that is deleted in steps, by name: a page begins behind the last one, so that it does not
-- cost what was deleted before it.
-- Caller: queen-storage admin::delete_queue. Locks: none. Writes: nothing.
-- $1 tenant uuid, $2 queue name text, $3 partitions beyond this name text
SELECT p.id, p.name
FROM queen.queues q
CROSS JOIN LATERAL (
    SELECT p.id, p.name
    FROM queen.log_partitions p
    WHERE p.queue_id = q.id AND p.name > $3::text
    ORDER BY p.name
    LIMIT 200
) p
WHERE q.tenant_id = $1::uuid AND q.name = $2::text
ORDER BY p.name
