-- Deletes some of the dead letters of a queue; called again until none is left. One that is being replayed is passed.
-- Caller: queen-storage messages/replay.rs. Locks: log_dlq rows, SKIP LOCKED. Writes: log_dlq.
-- $1 tenant uuid, $2 queue text, $3 group text (NULL: every group)
DELETE FROM queen.log_dlq d
WHERE d.id = ANY (ARRAY(
    SELECT o.id
    FROM queen.queues q
    CROSS JOIN LATERAL (SELECT p.id FROM queen.log_partitions p WHERE p.queue_id = q.id OFFSET 0) p
    CROSS JOIN LATERAL (
        SELECT o.id FROM queen.log_dlq o
        WHERE o.partition_id = p.id AND ($3::text IS NULL OR o.consumer_group = $3)
        FOR UPDATE SKIP LOCKED
    ) o
    WHERE q.tenant_id = $1::uuid AND q.name = $2::text
    LIMIT 5000
))
