-- Takes every task that is due and not leased, and tells when each of the others will be. A task counts as due a little
-- early, so that tasks of different periods share their moments. A lease of the caller's own name is one of an earlier
-- life: a broker asks only while it does nothing.
-- Caller: queen-storage maintenance/lease.rs. Locks: maintenance_leases by task, SKIP LOCKED. Writes: maintenance_leases,
-- only when something is taken.
-- $1 task text[], $2 holder text, $3 lease ms int8, $4 how early ms int8
WITH free AS MATERIALIZED (
    SELECT l.task
    FROM queen.maintenance_leases l
    WHERE l.task = ANY ($1::text[]) AND l.enabled
      AND l.next_due_at <= statement_timestamp() + make_interval(secs => LEAST($4::int8, l.period_ms / 4) / 1000.0)
      AND (COALESCE(l.lease_until <= statement_timestamp(), TRUE) OR l.holder = $2::text)
    ORDER BY l.task
    FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE queen.maintenance_leases l
    SET holder = $2::text, fence = l.fence + 1, last_start_at = statement_timestamp(),
        lease_until = statement_timestamp() + make_interval(secs => $3::int8 / 1000.0)
    FROM free f
    WHERE l.task = f.task
    RETURNING l.task, l.fence
)
SELECT l.task, t.fence,
       -- Of a task that somebody does now nobody knows when it ends: it is asked for again after a period.
       CASE WHEN l.enabled THEN GREATEST(
           extract(epoch FROM l.next_due_at - statement_timestamp()) * 1000,
           CASE WHEN l.lease_until > statement_timestamp() THEN LEAST(
               extract(epoch FROM l.lease_until - statement_timestamp()) * 1000, GREATEST(l.period_ms, 100)
           ) END,
           0
       )::int8 END AS wait_ms
FROM queen.maintenance_leases l
LEFT JOIN taken t ON t.task = l.task
WHERE l.task = ANY ($1::text[])
