-- What is known of every background task.
-- Caller: queen-storage maintenance/lease.rs. Locks: none. Writes: nothing.
SELECT l.task, l.period_ms, l.next_due_at, l.lease_until, l.holder, l.last_start_at, l.last_end_at, l.last_duration_ms,
       l.runs, l.enabled
FROM queen.maintenance_leases l
ORDER BY l.task
