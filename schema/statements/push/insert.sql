-- Appends segments to partitions whose rows the transaction holds locked, unless a transaction id of a partition's
-- segments is stored already inside the deduplication window: then nothing of that partition is written and the
-- repeated frames are named with the lowest offset that holds their id.
--
-- One row comes back per segment whose partition exists: its base offset when it was written, else the repeated frames.
-- A segment without a row: its partition is gone. A queue that wants its payloads encrypted takes none that are not.
--
-- What the caller knows narrows the probe: none of the segment's hashes occurs in (covered_from, vouched], except
-- perhaps in (maybe_above, maybe_upto]. Rows at or below covered_from are probed as long as they are inside the window
-- by this clock. Knowledge from another database server ($11) or beyond the log's end is ignored. In the common case
-- nothing is left to probe, and `probed` does not run.
--
-- For the caller's memory, a written segment comes with the hashes of the rows above vouched that are inside the
-- window, when they are few, and with whether there were rows at or below covered_from.
--
-- Stamps do not decrease along a log, and log_txns holds only offsets below those of log_segments; so the first row
-- that is out of the window ends the search downwards.
--
-- The clock is that of the statement's start, which comes after the lock was obtained.
--
-- Caller: queen-storage push, after push/lock.sql. Locks: none beyond those held. Writes: log_segments.
-- $1 partition uuid[] (equal ids adjacent, in append order), $2 messages of the same partition ahead int8[],
-- $3 frames int4[], $4 hashes bytea[], $5 blob bytea[], $6 vouched int8[], $7 covered_from int8[],
-- $8 maybe_above int8[], $9 maybe_upto int8[], $10 the payloads are encrypted boolean, $11 server the rest is known
-- from timestamptz
WITH placed AS MATERIALIZED (
    SELECT i.ord::int4 AS ord, i.partition_id, i.frames, e.log_end + 1 + i.ahead AS base_offset,
           -- The stamp never goes back, the clock may. The window is measured on the clock: behind it the stamp of a
           -- partition that was written under a clock ahead would leave keys of a moment ago out.
           GREATEST(statement_timestamp(), e.newest_at) AS stamp, e.start, e.encrypted AND NOT $10::boolean AS sealed,
           e.dedup_window, e.log_end, e.opened,
           k.vouched, k.covered_from, k.maybe_above, k.maybe_upto,
           COALESCE(k.covered_from >= 0 AND e.dedup_window > 0 AND e.start <= COALESCE((
               SELECT s.created_at FROM queen.log_segments s
               WHERE s.partition_id = i.partition_id AND s.base_offset <= k.covered_from
               ORDER BY s.base_offset DESC LIMIT 1
           ), (
               SELECT t.created_at FROM queen.log_txns t
               WHERE t.partition_id = i.partition_id AND t.base_offset <= k.covered_from
               ORDER BY t.base_offset DESC LIMIT 1
           )), FALSE) AS short
    FROM unnest($1::uuid[], $2::int8[], $3::int4[], $6::int8[], $7::int8[], $8::int8[], $9::int8[])
        WITH ORDINALITY AS i (partition_id, ahead, frames, vouched, covered_from, maybe_above, maybe_upto, ord)
    --@ part log_end
    CROSS JOIN LATERAL (
        SELECT CASE WHEN u.usable THEN i.vouched ELSE -1 END AS vouched,
               CASE WHEN u.usable THEN i.covered_from ELSE -1 END AS covered_from,
               CASE WHEN u.usable THEN i.maybe_above ELSE -1 END AS maybe_above,
               CASE WHEN u.usable THEN i.maybe_upto ELSE -1 END AS maybe_upto
        FROM (SELECT i.vouched <= e.log_end AND pg_postmaster_start_time() = $11::timestamptz AS usable) u
    ) k
), probed AS MATERIALIZED (
    SELECT p.ord, p.partition_id, d.frames, d.originals, d.before_from, d.before
    FROM placed p
    CROSS JOIN LATERAL (
        WITH held AS MATERIALIZED (
            SELECT h.base_offset, (h.end_offset - h.base_offset)::int4 AS last, h.bytes
            FROM (VALUES (p.vouched, p.log_end), (p.maybe_above, p.maybe_upto), (-1, p.covered_from)) AS r (above, upto)
            CROSS JOIN LATERAL (
                -- Of a long stretch, the part that is certainly older than the window is skipped: the stamps that lie
                -- 2, 4, 8, .. offsets before the end say where it ends.
                SELECT CASE WHEN r.upto - r.above > 1024 THEN GREATEST(r.above, (
                    SELECT max(b.end_offset)
                    FROM generate_series(1, 62) AS power
                    CROSS JOIN LATERAL (
                        SELECT s.end_offset, s.created_at FROM queen.log_segments s
                        WHERE s.partition_id = p.partition_id AND s.base_offset <= r.upto - (1::int8 << power)
                        ORDER BY s.base_offset DESC LIMIT 1
                    ) b
                    WHERE (1::int8 << power) <= r.upto AND b.created_at < p.start
                )) ELSE r.above END AS above
                OFFSET 0
            ) f
            CROSS JOIN LATERAL (
                -- Rows that hold any offset of the stretch. The concatenation fetches a stored value once; substr alone
                -- would fetch a slice per hash.
                SELECT s.base_offset, s.end_offset, s.hashes || ''::bytea AS bytes
                FROM queen.log_segments s
                WHERE s.partition_id = p.partition_id AND s.base_offset <= r.upto AND s.created_at >= p.start
                  AND s.base_offset >= COALESCE((
                      SELECT o.base_offset FROM queen.log_segments o
                      WHERE o.partition_id = p.partition_id AND o.base_offset <= f.above AND o.end_offset > f.above
                      ORDER BY o.base_offset DESC LIMIT 1
                  ), f.above + 1)
                UNION ALL
                SELECT t.base_offset, t.end_offset, t.hashes || ''::bytea
                FROM queen.log_txns t
                WHERE t.partition_id = p.partition_id AND t.base_offset <= r.upto AND t.created_at >= p.start
                  AND t.base_offset >= COALESCE((
                      SELECT o.base_offset FROM queen.log_txns o
                      WHERE o.partition_id = p.partition_id AND o.base_offset <= f.above AND o.end_offset > f.above
                      ORDER BY o.base_offset DESC LIMIT 1
                  ), f.above + 1)
            ) h
            WHERE r.upto > r.above
        )
        SELECT r.frames, r.originals, b.before_from, b.before
        FROM (
            SELECT array_agg(m.frame ORDER BY m.frame) AS frames, array_agg(m.original ORDER BY m.frame) AS originals
            FROM (
                SELECT n.frame, min(stored.at) AS original
                FROM (
                    SELECT f AS frame, substr(i.hashes, 1 + 16 * f, 16) AS hash
                    FROM (SELECT ($4::bytea[])[p.ord] AS hashes OFFSET 0) i
                    CROSS JOIN LATERAL generate_series(0, p.frames - 1) AS f
                ) n
                JOIN (
                    -- a row of one message needs no series, which costs more than the rest of its search
                    SELECT h.base_offset AS at, h.bytes AS hash FROM held h WHERE h.last = 0
                    UNION ALL
                    (SELECT h.base_offset + k AS at, substr(h.bytes, 1 + 16 * k, 16) AS hash
                     FROM held h
                     CROSS JOIN LATERAL generate_series(0, h.last) AS k
                     WHERE h.last > 0
                     -- cuts the hash out of its row before anything is sorted or hashed by it
                     OFFSET 0)
                ) stored ON stored.hash = n.hash
                GROUP BY n.frame
            ) m
        ) r
        CROSS JOIN (
            SELECT COALESCE(min(h.base_offset), p.log_end + 1) - 1 AS before_from,
                   CASE WHEN COALESCE(sum(octet_length(h.bytes)), 0) <= 65536
                        THEN COALESCE(string_agg(h.bytes, ''::bytea ORDER BY h.base_offset), ''::bytea) END AS before
            FROM held h
            WHERE h.base_offset > p.vouched
        ) b
        OFFSET 0
    ) d
    WHERE p.dedup_window > 0 AND (p.vouched < p.log_end OR p.maybe_above < p.maybe_upto OR p.short)
), added AS (
    INSERT INTO queen.log_segments (partition_id, base_offset, end_offset, created_at, hashes, blob)
    SELECT p.partition_id, p.base_offset, p.base_offset + p.frames - 1, p.stamp,
           ($4::bytea[])[p.ord], ($5::bytea[])[p.ord]
    FROM placed p
    WHERE NOT p.sealed AND p.partition_id NOT IN (SELECT r.partition_id FROM probed r WHERE r.frames IS NOT NULL)
)
SELECT p.ord - 1 AS segment,
       CASE WHEN NOT p.sealed
             AND p.partition_id NOT IN (SELECT r.partition_id FROM probed r WHERE r.frames IS NOT NULL)
            THEN p.base_offset END AS base_offset,
       r.frames, r.originals, p.sealed, p.dedup_window, p.opened, p.vouched, p.short, r.before_from, r.before,
       pg_postmaster_start_time() AS server
FROM placed p
LEFT JOIN probed r ON r.ord = p.ord
ORDER BY p.ord
