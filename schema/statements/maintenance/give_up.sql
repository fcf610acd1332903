-- Ends every lease of a broker that goes down, so that another goes on at once.
-- Caller: queen-storage maintenance/lease.rs. Locks: maintenance_leases by task. Writes: maintenance_leases.
-- $1 holder text
WITH held AS MATERIALIZED (
    SELECT l.task FROM queen.maintenance_leases l WHERE l.holder = $1::text ORDER BY l.task FOR UPDATE
)
UPDATE queen.maintenance_leases l
SET lease_until = NULL, holder = NULL, fence = l.fence + 1
FROM held h
WHERE l.task = h.task
