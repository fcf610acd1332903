-- Deletes repairs that every broker has seen long ago. What somebody else is about to delete or renew is left to them.
-- Caller: queen-storage groups/repairs.rs, after a repair was written. Locks: hotlist_repairs, SKIP LOCKED.
-- Writes: hotlist_repairs.
DELETE FROM queen.hotlist_repairs r
WHERE r.ctid = ANY (ARRAY(
    SELECT o.ctid FROM queen.hotlist_repairs o
    WHERE o.repair_at < now() - interval '1 hour'
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
))
