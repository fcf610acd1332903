-- Sets the cursors of a group on some partitions right before the first segment that was created at or after an instant,
-- or to the end of the log when there is none, and makes those that are missing. Leases and retry delays go.
--
-- Segments of a partition are ordered by time, so the segment is found by bisection: some twenty probes of the primary
-- key, however long the log is. In each step the wanted offset lies in lo..hi.
-- Caller: queen-storage groups/seek.rs, after the lock statements, whose snapshot is older than what was waited for.
-- Locks: none beyond those held. Writes: log_consumers.
-- $1 partition uuid[] ascending, $2 group text, $3 instant timestamptz
WITH RECURSIVE bisect AS (
    SELECT i.ord, p.id, p.log_start AS lo, GREATEST(e.log_end + 1, p.log_start) AS hi
    --@ part seek_from
    UNION ALL
    SELECT b.ord, b.id,
           CASE WHEN s.created_at >= $3::timestamptz THEN b.lo ELSE GREATEST(s.end_offset, m.mid) + 1 END,
           CASE WHEN s.created_at >= $3::timestamptz THEN GREATEST(s.base_offset, b.lo) ELSE b.hi END
    FROM bisect b
    CROSS JOIN LATERAL (SELECT b.lo + (b.hi - b.lo) / 2 AS mid OFFSET 0) m
    LEFT JOIN LATERAL (
        SELECT s.base_offset, s.end_offset, s.created_at FROM queen.log_segments s
        WHERE s.partition_id = b.id AND s.base_offset <= m.mid
        ORDER BY s.base_offset DESC LIMIT 1
    ) s ON TRUE
    WHERE b.lo < b.hi
)
INSERT INTO queen.log_consumers AS c (partition_id, consumer_group, committed)
SELECT b.id, $2, COALESCE(
           -- behind a gap the segment begins later
           (SELECT s.base_offset FROM queen.log_segments s
            WHERE s.partition_id = b.id AND s.base_offset >= b.lo ORDER BY s.base_offset LIMIT 1), b.lo) - 1
FROM bisect b
WHERE b.lo >= b.hi
ORDER BY b.ord
--@ part seek_reset
