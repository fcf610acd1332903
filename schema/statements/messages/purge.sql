-- Deletes some of the dead letters of a queue, partition by partition in the order of their names, the youngest of each
-- first, and tells where it stopped: there the next call begins, so that it does not look again at what this one deleted.
-- One that is being replayed is passed.
-- Caller: queen-storage messages/replay.rs, until fewer than 5000 were deleted. Locks: log_dlq rows, SKIP LOCKED.
-- Writes: log_dlq.
-- $1 tenant uuid, $2 queue text, $3 group text (NULL: every group), $4 from partition name text, $5 in that partition
-- from timestamptz downwards
WITH old AS MATERIALIZED (
    SELECT o.address, p.name, o.failed_at
    FROM queen.queues q
    CROSS JOIN LATERAL (
        SELECT p.id, p.name FROM queen.log_partitions p WHERE p.queue_id = q.id AND p.name >= $4::text ORDER BY p.name
    ) p
    CROSS JOIN LATERAL (
        SELECT o.ctid AS address, o.failed_at
        FROM queen.log_dlq o
        WHERE o.partition_id = p.id AND ($3::text IS NULL OR o.consumer_group = $3)
          AND o.failed_at <= CASE WHEN p.name = $4 THEN $5::timestamptz ELSE 'infinity' END
        ORDER BY o.failed_at DESC
        FOR UPDATE SKIP LOCKED
    ) o
    WHERE q.tenant_id = $1::uuid AND q.name = $2::text
    LIMIT 5000
), removed AS (
    DELETE FROM queen.log_dlq d USING old o WHERE d.ctid = o.address RETURNING d.id
)
SELECT (SELECT count(*) FROM removed) AS rows, o.name, o.failed_at
FROM old o
ORDER BY o.name DESC, o.failed_at
LIMIT 1
