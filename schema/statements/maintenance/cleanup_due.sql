-- Partitions that have been empty for long, longest first.
-- Caller: queen-storage maintenance/cleanup.rs. Locks: none. Writes: nothing.
-- $1 days int4
SELECT p.id
FROM queen.log_partitions p
WHERE p.oldest_live_at IS NULL AND p.last_write_at < statement_timestamp() - make_interval(days => $1::int4)
ORDER BY p.last_write_at
LIMIT 500
