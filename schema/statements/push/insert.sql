-- Appends segments to partitions whose rows the transaction holds locked, unless a transaction id of a partition's
-- segments is stored already inside the deduplication window: then nothing of that partition is written and the
-- repeated frames are named with the lowest offset that holds their id.
--
-- One row comes back per segment whose partition exists: its base offset and time when it was written, else the
-- repeated frames. A segment without a row: its partition is gone. A queue that wants its payloads encrypted takes none
-- that are not.
--
-- The vouched offset narrows the probe: the caller knows that none of the hashes occurs at or below it. One that lies
-- beyond the log's end is from another life of the partition and is ignored.
--
-- Caller: queen-storage push.rs and transaction.rs, after push/lock.sql. Locks: none beyond those held.
-- Writes: log_segments.
-- $1 partition uuid[] (equal ids adjacent, in append order), $2 frames int4[], $3 hashes bytea[], $4 blob bytea[],
-- $5 vouched int8[], $6 the payloads are encrypted boolean
WITH input AS MATERIALIZED (
    SELECT i.ord::int4 AS ord, i.partition_id, i.frames, i.vouched,
           COALESCE(sum(i.frames) OVER (
               PARTITION BY i.partition_id ORDER BY i.ord ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
           ), 0)::int8 AS ahead
    FROM unnest($1::uuid[], $2::int4[], $5::int8[]) WITH ORDINALITY AS i (partition_id, frames, vouched, ord)
), placed AS MATERIALIZED (
    SELECT i.ord, i.partition_id, i.frames, e.log_end + 1 + i.ahead AS base_offset,
           -- The stamp never goes back, the clock may. The window is measured on the clock: behind it the stamp of a
           -- partition that was written under a clock ahead would leave keys of a moment ago out.
           GREATEST(clock_timestamp(), e.newest_at) AS stamp, clock_timestamp() AS clock,
           e.dedup_window, e.sealed,
           CASE WHEN i.vouched > e.log_end THEN -1 ELSE i.vouched END AS vouched
    FROM input i
    CROSS JOIN LATERAL (
        SELECT GREATEST(p.last_offset, t.end_offset) AS log_end, t.created_at AS newest_at,
               q.dedup_window_seconds AS dedup_window, q.encryption_enabled AND NOT $6::boolean AS sealed
        FROM queen.log_partitions p
        CROSS JOIN LATERAL (
            SELECT q.dedup_window_seconds, q.encryption_enabled FROM queen.queues q WHERE q.id = p.queue_id OFFSET 0
        ) q
        LEFT JOIN LATERAL (
            SELECT s.end_offset, s.created_at
            FROM queen.log_segments s
            WHERE s.partition_id = i.partition_id
            ORDER BY s.base_offset DESC
            LIMIT 1
        ) t ON TRUE
        WHERE p.id = i.partition_id
        OFFSET 0
    ) e
), repeated AS MATERIALIZED (
    SELECT p.ord, p.partition_id, d.frame, d.original
    FROM placed p
    CROSS JOIN LATERAL (
        SELECT n.frame, min(stored.at) AS original
        FROM (
            SELECT f AS frame, substr(($3::bytea[])[p.ord], 1 + 16 * f, 16) AS hash
            FROM generate_series(0, p.frames - 1) AS f
        ) n
        JOIN (
            -- the concatenation fetches a stored value once; substr alone would fetch a slice per hash
            SELECT h.base_offset + k AS at, substr(h.bytes, 1 + 16 * k, 16) AS hash
            FROM (
                SELECT s.base_offset, (s.end_offset - s.base_offset)::int4 AS last, s.hashes || ''::bytea AS bytes
                FROM queen.log_segments s
                WHERE s.partition_id = p.partition_id AND s.base_offset > p.vouched
                  AND s.created_at >= p.clock - make_interval(secs => p.dedup_window)
                UNION ALL
                SELECT t.base_offset, (t.end_offset - t.base_offset)::int4, t.hashes || ''::bytea
                FROM queen.log_txns t
                WHERE t.partition_id = p.partition_id AND t.base_offset > p.vouched
                  AND t.created_at >= p.clock - make_interval(secs => p.dedup_window)
            ) h
            CROSS JOIN LATERAL generate_series(0, h.last) AS k
            -- cuts the hash out of its row before anything is sorted or hashed by it, not the whole row's bytes along
            OFFSET 0
        ) stored ON stored.hash = n.hash
        GROUP BY n.frame
    ) d
    WHERE p.dedup_window > 0
), added AS (
    INSERT INTO queen.log_segments (partition_id, base_offset, end_offset, created_at, hashes, blob)
    SELECT p.partition_id, p.base_offset, p.base_offset + p.frames - 1, p.stamp,
           ($3::bytea[])[p.ord], ($4::bytea[])[p.ord]
    FROM placed p
    WHERE NOT p.sealed AND p.partition_id NOT IN (SELECT r.partition_id FROM repeated r)
    RETURNING partition_id, base_offset
)
SELECT p.ord - 1 AS segment, p.partition_id, a.base_offset, r.frames, r.originals, p.sealed
FROM placed p
LEFT JOIN added a ON a.partition_id = p.partition_id AND a.base_offset = p.base_offset
LEFT JOIN (
    SELECT r.ord, array_agg(r.frame ORDER BY r.frame) AS frames, array_agg(r.original ORDER BY r.frame) AS originals
    FROM repeated r
    GROUP BY r.ord
) r ON r.ord = p.ord
ORDER BY p.ord
