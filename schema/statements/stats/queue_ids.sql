-- Every queue.
-- Caller: queen-storage stats.rs. Locks: none. Writes: nothing.
SELECT q.id FROM queen.queues q ORDER BY q.id
