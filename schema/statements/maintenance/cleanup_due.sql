-- Partitions that have been empty for long, longest first, from the moment on at which the last page ended.
-- Caller: queen-storage maintenance/cleanup.rs. Locks: none. Writes: nothing.
-- $1 days int4, $2 from timestamptz
SELECT p.id, p.last_write_at
FROM queen.log_partitions p
WHERE p.oldest_live_at IS NULL AND p.last_write_at < statement_timestamp() - make_interval(days => $1::int4)
  AND p.last_write_at >= $2::timestamptz
ORDER BY p.last_write_at
LIMIT 500
