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
    --@ part furthest_behind
    --@ part partition_counts
    WHERE p.queue_id = q.id
) t
WHERE q.tenant_id = $1::uuid
ORDER BY q.created_at DESC, q.name COLLATE "C"
