-- Reads back the hashes of partitions that are inside the deduplication window, newest first, so that a push need not
-- search for them while it holds the partition locked. Per partition one page: no more rows than $4, and no more bytes
-- than $3 beyond the first row.
--
-- One row comes back per partition that exists: the page holds all that is stored in (from_offset, upto], and `more` says
-- whether rows at or below from_offset are inside the window too. Stamps do not decrease along a log, and log_txns holds
-- only offsets below those of log_segments, so the newest row below tells that.
--
-- The row limit is a parameter: the index leaves the planner no other way to serve the order (docs/decisions/002).
--
-- Caller: queen-storage push, before a push and without its locks. Locks: none. Writes: nothing.
-- $1 partition uuid[], $2 last offset to read int8[] (beyond the log: its end), $3 bytes int8, $4 rows int8
SELECT i.ord::int4 - 1 AS ord, e.dedup_window, n.upto, COALESCE(a.from_offset, n.upto) AS from_offset,
       COALESCE(a.hashes, ''::bytea) AS hashes,
       GREATEST(0, LEAST(2147483647, extract(epoch FROM statement_timestamp() - a.newest_at)))::int4 AS age,
       e.dedup_window > 0 AND COALESCE(COALESCE((
           SELECT s.created_at FROM queen.log_segments s
           WHERE s.partition_id = i.partition_id AND s.base_offset <= a.from_offset
           ORDER BY s.base_offset DESC LIMIT 1
       ), (
           SELECT t.created_at FROM queen.log_txns t
           WHERE t.partition_id = i.partition_id AND t.base_offset <= a.from_offset
           ORDER BY t.base_offset DESC LIMIT 1
       )) >= e.start, FALSE) AS more,
       pg_postmaster_start_time() AS server
FROM unnest($1::uuid[], $2::int8[]) WITH ORDINALITY AS i (partition_id, upto, ord)
--@ part log_end
CROSS JOIN LATERAL (SELECT LEAST(i.upto, e.log_end) AS upto) n
CROSS JOIN LATERAL (
    SELECT min(h.base_offset) - 1 AS from_offset, max(h.created_at) AS newest_at,
           string_agg(h.hashes, ''::bytea ORDER BY h.base_offset) AS hashes
    FROM (
        SELECT r.base_offset, r.created_at, r.hashes,
               sum(octet_length(r.hashes)) OVER (ORDER BY r.base_offset DESC ROWS UNBOUNDED PRECEDING)
                   - octet_length(r.hashes) AS newer
        FROM (
            SELECT u.base_offset, u.created_at, u.hashes
            FROM (
                (SELECT s.base_offset, s.created_at, s.hashes
                 FROM queen.log_segments s
                 WHERE s.partition_id = i.partition_id AND s.base_offset <= n.upto
                 ORDER BY s.base_offset DESC LIMIT $4::int8)
                UNION ALL
                (SELECT t.base_offset, t.created_at, t.hashes
                 FROM queen.log_txns t
                 WHERE t.partition_id = i.partition_id AND t.base_offset <= n.upto
                 ORDER BY t.base_offset DESC LIMIT $4::int8)
            ) u
            ORDER BY u.base_offset DESC
            LIMIT $4::int8
        ) r
        WHERE r.created_at >= e.start
    ) h
    WHERE h.newer < $3::int8 AND e.dedup_window > 0
) a
