-- One page of the names that notes have, most recently used first, and how many there are. The first column is the
-- total; it comes back also when the page is empty, beside a NULL name. Counts every note of the tenant.
-- Caller: queen-storage traces.rs. Locks: none. Writes: nothing.
-- $1 tenant uuid, $2 limit int8, $3 offset int8
WITH named AS MATERIALIZED (
    SELECT n.trace_name, count(*) AS notes, count(DISTINCT (t.partition_id, t.transaction_id)) AS messages,
           max(t.created_at) AS last_seen
    FROM queen.message_trace_names n
    CROSS JOIN LATERAL (
        SELECT t.partition_id, t.transaction_id, t.created_at FROM queen.message_traces t
        WHERE t.id = n.trace_id AND t.tenant_id = $1::uuid
        OFFSET 0
    ) t
    GROUP BY n.trace_name
), page AS (
    SELECT d.trace_name, d.notes, d.messages, d.last_seen FROM named d
    ORDER BY d.last_seen DESC, d.trace_name LIMIT $2::int8 OFFSET $3::int8
)
SELECT c.total, g.trace_name, g.notes, g.messages, g.last_seen
FROM (SELECT count(*) AS total FROM named) c
LEFT JOIN page g ON TRUE
ORDER BY g.last_seen DESC, g.trace_name
