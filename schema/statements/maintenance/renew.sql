-- Prolongs the lease of a task that takes longer; no row: the lease was lost.
-- Caller: queen-storage maintenance/lease.rs. Locks: maintenance_leases, one row. Writes: maintenance_leases.
-- $1 task text, $2 holder text, $3 fence int8, $4 lease ms int8
UPDATE queen.maintenance_leases l
SET lease_until = statement_timestamp() + make_interval(secs => $4::int8 / 1000.0)
WHERE l.task = $1::text AND l.holder = $2::text AND l.fence = $3::int8
RETURNING l.task
