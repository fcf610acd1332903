-- Deletes the counters of what no longer exists: rows that the run of this transaction did not write.
-- Caller: queen-storage stats.rs, after refresh.sql in the same transaction. Locks: stats. Writes: stats.
DELETE FROM queen.stats t WHERE t.last_computed_at < now()
