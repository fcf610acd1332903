-- Makes a task due at once, unless it ended a moment ago.
-- Caller: queen-storage maintenance/lease.rs. Locks: maintenance_leases, one row. Writes: maintenance_leases.
-- $1 task text
UPDATE queen.maintenance_leases l
SET next_due_at = statement_timestamp()
WHERE l.task = $1::text AND COALESCE(l.last_end_at < statement_timestamp() - interval '10 seconds', TRUE)
