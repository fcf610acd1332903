-- Every queue of a tenant, newest first, with the counts of its partitions added up.
-- Caller: queen-storage admin::queue_list, admin::namespaces, admin::tasks.
-- Locks: none. Writes: nothing.
-- Per partition: log end = the larger of last_offset and the newest segment's end; worst = the furthest-behind view:
-- the slowest named group, else queue mode, else nobody. One index probe for the end, one index range each for the
-- cursors and the dead letters; no message is read.
-- $1 tenant uuid
SELECT
    q.id, q.name, COALESCE(q.namespace, '') AS namespace, COALESCE(q.task, '') AS task, q.created_at,
    t.partitions, t.total, t.backlog, t.processing, t.completed, t.dead_letter
FROM queen.queues q
CROSS JOIN LATERAL (
    SELECT
        count(*) AS partitions,
        COALESCE(sum(n.total), 0)::int8 AS total,
        COALESCE(sum(n.backlog), 0)::int8 AS backlog,
        COALESCE(sum(LEAST(c.leased, n.backlog)), 0)::int8 AS processing,
        COALESCE(sum(GREATEST(n.total - n.backlog - d.dead_letter, 0)), 0)::int8 AS completed,
        COALESCE(sum(d.dead_letter), 0)::int8 AS dead_letter
    FROM queen.log_partitions p
    LEFT JOIN LATERAL (
        SELECT s.end_offset
        FROM queen.log_segments s
        WHERE s.partition_id = p.id
        ORDER BY s.base_offset DESC
        LIMIT 1
    ) newest ON TRUE
    CROSS JOIN LATERAL (
        SELECT
            COALESCE(
                min(c.committed) FILTER (WHERE c.consumer_group <> '__QUEUE_MODE__'),
                min(c.committed), -1
            ) AS worst,
            COALESCE(
                sum(c.batch_end - GREATEST(c.committed, p.log_start - 1)) FILTER (WHERE c.lease_expires_at > now()), 0
            ) AS leased
        FROM queen.log_consumers c
        WHERE c.partition_id = p.id
    ) c
    CROSS JOIN LATERAL (
        SELECT count(*) AS dead_letter FROM queen.log_dlq d WHERE d.partition_id = p.id
    ) d
    CROSS JOIN LATERAL (
        SELECT
            GREATEST(e.log_end - p.log_start + 1, 0) AS total,
            GREATEST(e.log_end - GREATEST(c.worst, p.log_start - 1), 0) AS backlog
        FROM (SELECT GREATEST(p.last_offset, newest.end_offset) AS log_end) e
    ) n
    WHERE p.queue_id = q.id
) t
WHERE q.tenant_id = $1::uuid
ORDER BY q.created_at DESC, q.name COLLATE "C"
