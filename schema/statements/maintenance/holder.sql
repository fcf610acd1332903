-- One more way to exclude a second worker of a task, should the clock or a long stall have broken its lease: the
-- transaction that holds this touches no table, and whoever does not get it does nothing.
-- Caller: queen-storage maintenance/lease.rs. Locks: a transaction-scoped advisory lock, never waited for.
-- Writes: nothing.
-- $1 lock id int8
SELECT pg_try_advisory_xact_lock($1::int8) AS held
