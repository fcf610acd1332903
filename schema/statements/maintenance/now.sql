-- The database's clock.
-- Caller: queen-storage maintenance/lease.rs. Locks: none. Writes: nothing.
SELECT statement_timestamp() AS now
