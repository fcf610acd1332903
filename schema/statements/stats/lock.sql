-- Excludes a second recomputation of the statistics: somebody who asks for one while the periodical one runs.
-- Caller: queen-storage stats.rs. Locks: a transaction-scoped advisory lock, never waited for. Writes: nothing.
SELECT pg_try_advisory_xact_lock(737002) AS held
