-- The segments of some queues that were stored in a span of time, newest first: up to 500 that lie behind a given one in
-- this order. No payload is read.
--
-- Segments of a partition are ordered by time, so both ends of the span are found by bisection, and only segments of the
-- span are read, however long the logs are. In each step the wanted offset lies in lo..hi.
-- Caller: queen-storage messages/browse.rs. Locks: none. Writes: nothing.
-- $1 tenant uuid, $2 queue text or NULL, $3 partition text or NULL, $4 namespace text or NULL, $5 task text or NULL,
-- $6 stored at or after timestamptz (NULL: an hour ago), $7 stored before timestamptz (NULL: whenever)
-- $8 stamp of the segment to go on behind timestamptz (NULL: the newest), $9 its partition uuid, $10 its base int8
WITH RECURSIVE lane AS MATERIALIZED (
    SELECT q.name AS queue, COALESCE(q.namespace, '') AS namespace, COALESCE(q.task, '') AS task, q.priority,
           p.id, p.name AS partition, p.log_start, e.log_end
    FROM queen.queues q
    CROSS JOIN LATERAL (
        SELECT p.id, p.name, p.log_start, p.last_offset FROM queen.log_partitions p
        WHERE p.queue_id = q.id AND ($3::text IS NULL OR p.name = $3)
        OFFSET 0
    ) p
    CROSS JOIN LATERAL (
        SELECT GREATEST(p.last_offset,
                   (SELECT s.end_offset FROM queen.log_segments s
                    WHERE s.partition_id = p.id ORDER BY s.base_offset DESC LIMIT 1)) AS log_end
        OFFSET 0
    ) e
    WHERE q.tenant_id = $1::uuid
      AND ($2::text IS NULL OR q.name = $2)
      AND ($4::text IS NULL OR COALESCE(q.namespace, '') = $4)
      AND ($5::text IS NULL OR COALESCE(q.task, '') = $5)
), bisect AS (
    SELECT l.id, t.bound, t.at, l.log_start AS lo, GREATEST(l.log_end + 1, l.log_start) AS hi
    FROM lane l
    CROSS JOIN (VALUES (0, COALESCE($6::timestamptz, now() - interval '1 hour')),
                       (1, COALESCE($7::timestamptz, 'infinity'))) AS t (bound, at)
    UNION ALL
    SELECT b.id, b.bound, b.at,
           CASE WHEN s.created_at >= b.at THEN b.lo ELSE GREATEST(s.end_offset, m.mid) + 1 END,
           CASE WHEN s.created_at >= b.at THEN GREATEST(s.base_offset, b.lo) ELSE b.hi END
    FROM bisect b
    CROSS JOIN LATERAL (SELECT b.lo + (b.hi - b.lo) / 2 AS mid OFFSET 0) m
    LEFT JOIN LATERAL (
        SELECT s.base_offset, s.end_offset, s.created_at FROM queen.log_segments s
        WHERE s.partition_id = b.id AND s.base_offset <= m.mid
        ORDER BY s.base_offset DESC LIMIT 1
    ) s ON TRUE
    WHERE b.lo < b.hi
), span AS MATERIALIZED (
    SELECT b.id, max(b.lo) FILTER (WHERE b.bound = 0) AS first, max(b.lo) FILTER (WHERE b.bound = 1) AS behind
    FROM bisect b
    WHERE b.lo >= b.hi
    GROUP BY b.id
)
SELECT l.id AS partition_id, l.partition, l.queue, l.namespace, l.task, l.priority, s.base_offset, s.end_offset,
       s.created_at
FROM lane l
JOIN span r ON r.id = l.id
CROSS JOIN LATERAL (
    SELECT s.base_offset, s.end_offset, s.created_at FROM queen.log_segments s
    WHERE s.partition_id = r.id AND s.base_offset >= r.first AND s.base_offset < r.behind
      AND ($8::timestamptz IS NULL
           OR (s.created_at, s.partition_id, s.base_offset) < ($8::timestamptz, $9::uuid, $10::int8))
    ORDER BY s.base_offset DESC
    LIMIT 500
) s
ORDER BY s.created_at DESC, l.id DESC, s.base_offset DESC
LIMIT 500
