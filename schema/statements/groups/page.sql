-- The next partitions of a queue, by name, for work that goes over all of them in chunks.
-- Caller: queen-storage groups/seek.rs. Locks: none. Writes: nothing.
-- $1 queue uuid, $2 from name text (the empty one comes first), $3 name that is done text (NULL: none)
SELECT p.id, p.name
FROM queen.log_partitions p
WHERE p.queue_id = $1 AND p.name >= $2 AND p.name IS DISTINCT FROM $3::text
ORDER BY p.name
LIMIT 1000
