-- Makes the rows of the background tasks, and sets their periods.
-- Caller: queen-storage maintenance/lease.rs, once per broker start. Locks: maintenance_leases by task.
-- Writes: maintenance_leases.
-- $1 task text[] ascending, $2 period ms int8[]
INSERT INTO queen.maintenance_leases AS l (task, period_ms)
SELECT i.task, i.period_ms
FROM unnest($1::text[], $2::int8[]) WITH ORDINALITY AS i (task, period_ms, ord)
ORDER BY i.ord
ON CONFLICT (task) DO UPDATE SET
    period_ms = excluded.period_ms,
    -- a shorter period takes effect at once
    next_due_at = LEAST(l.next_due_at, statement_timestamp() + make_interval(secs => excluded.period_ms / 1000.0))
WHERE l.period_ms <> excluded.period_ms
