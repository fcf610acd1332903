-- Every group of a tenant on every queue, with how far it is behind.
-- Caller: queen-storage groups/list.rs. Locks: none. Writes: nothing.
-- $1 tenant uuid, $2 group text (NULL: every group)
--@ part group_lag
SELECT g.queue, g.consumer_group, g.members, g.lagging, g.pending, g.age_seconds, g.consumed,
       m.subscription_mode, m.subscription_timestamp, m.created_at AS subscribed_at, COALESCE(m.conflation, FALSE) AS conflation
FROM (
    SELECT l.queue_id, l.queue, l.consumer_group, count(l.partition_id) AS members,
           count(*) FILTER (WHERE l.pending > 0) AS lagging, COALESCE(sum(l.pending), 0)::int8 AS pending,
           COALESCE(max(l.age_seconds), 0)::int8 AS age_seconds, COALESCE(sum(l.total_consumed), 0)::int8 AS consumed
    FROM lag l
    GROUP BY l.queue_id, l.queue, l.consumer_group
) g
LEFT JOIN LATERAL (
    SELECT m.subscription_mode, m.subscription_timestamp, m.created_at, m.conflation
    FROM queen.consumer_groups_metadata m
    WHERE m.tenant_id = $1::uuid AND m.consumer_group = g.consumer_group AND m.queue_id = g.queue_id
      AND m.partition_name = ''
    LIMIT 1
) m ON TRUE
ORDER BY g.queue, g.consumer_group
