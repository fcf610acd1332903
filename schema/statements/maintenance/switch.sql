-- Switches a background task on or off for all brokers; no row: there is no such task.
-- Caller: queen-storage maintenance/lease.rs. Locks: maintenance_leases, one row. Writes: maintenance_leases.
-- $1 task text, $2 enabled boolean
UPDATE queen.maintenance_leases l SET enabled = $2::boolean WHERE l.task = $1::text RETURNING l.enabled
