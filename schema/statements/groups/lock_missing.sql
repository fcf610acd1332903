-- Takes the right to make the cursors that do not exist yet: the lock that a claim tries before it makes one. So no claim
-- ever waits for a cursor that a seek is making, and none that makes several can deadlock with it.
-- Caller: queen-storage groups/seek.rs. Locks: advisory, in input order. Writes: nothing.
-- $1 partition uuid[] ascending, $2 group text
SELECT pg_advisory_xact_lock(hashtextextended($2::text, uuid_hash_extended(i.id, 7781200)))
FROM unnest($1::uuid[]) AS i (id)
CROSS JOIN LATERAL (
    SELECT (SELECT TRUE FROM queen.log_consumers c WHERE c.partition_id = i.id AND c.consumer_group = $2::text) AS there
    OFFSET 0
) c
WHERE c.there IS NULL
