-- Ends leases. A finished task is due one period after it was due, and not in the past; one that failed stays due. A
-- stale fence releases nothing.
-- Caller: queen-storage maintenance/lease.rs. Locks: maintenance_leases by task. Writes: maintenance_leases.
-- $1 task text[] ascending, $2 holder text, $3 fence int8[], $4 finished boolean[]
WITH held AS MATERIALIZED (
    SELECT l.task, i.finished
    FROM unnest($1::text[], $3::int8[], $4::boolean[]) AS i (task, fence, finished)
    CROSS JOIN LATERAL (
        SELECT l.task FROM queen.maintenance_leases l
        WHERE l.task = i.task AND l.holder = $2::text AND l.fence = i.fence
        FOR UPDATE
    ) l
)
UPDATE queen.maintenance_leases l
SET lease_until = NULL, holder = NULL, last_end_at = statement_timestamp(),
    last_duration_ms = (extract(epoch FROM statement_timestamp() - l.last_start_at) * 1000)::int8,
    runs = l.runs + CASE WHEN h.finished THEN 1 ELSE 0 END,
    next_due_at = CASE
        WHEN h.finished
        THEN GREATEST(l.next_due_at + make_interval(secs => l.period_ms / 1000.0), statement_timestamp())
        ELSE l.next_due_at
    END
FROM held h
WHERE l.task = h.task
