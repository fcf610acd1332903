-- Claims named partitions for a group and hands out their next messages: the one place that decides who gets which
-- message.
--
-- Per partition, in input order: is something visible beyond the cursor and is the cursor free? Then its row is locked
-- with SKIP LOCKED (a pop never waits), or, at the group's first claim, made under a try-lock of its own. The budget
-- of messages runs over the partitions in order. What is handed out is leased, or committed at once with auto-ack.
--
-- Every sub-select that names a big table is LATERAL behind OFFSET 0 or LIMIT 1, and both writes are INSERT .. ON
-- CONFLICT: the plan has no choice but the primary keys, however wrong the statistics are (docs/decisions/002).
--
-- Caller: queen-storage pop/claim.rs. Locks: log_consumers in input order, SKIP LOCKED; key share on log_partitions at a
-- group's first claim, SKIP LOCKED. Writes: log_consumers.
-- $1 partition uuid[], $2 group text, $3 worker text (NULL: auto-ack), $4 lease seconds int4[], $5 messages int8,
-- $6 partitions int8 (NULL: no cap), $7 delayedProcessing int4[], $8 windowBuffer int4[],
-- $9 windowBuffer holds until quiet boolean (else until the first unserved is old enough or enough are gathered),
-- $10 enough int8, $11 seed from timestamptz[], $12 everything for partitions born since timestamptz[],
-- $13 blob bytes int8 after which no further segment is taken
WITH input AS MATERIALIZED (
    SELECT i.*
    FROM unnest($1::uuid[], $4::int4[], $7::int4[], $8::int4[], $11::timestamptz[], $12::timestamptz[])
        WITH ORDINALITY AS i (partition_id, lease_seconds, delayed, hold, seed_from, seed_birth, ord)
), held AS MATERIALIZED (
    SELECT i.ord, i.partition_id, i.lease_seconds, i.delayed, c0.present,
           COALESCE(c.committed, c0.committed) AS committed
    FROM input i
    CROSS JOIN LATERAL (
        SELECT p.log_start, p.last_offset, p.created_at FROM queen.log_partitions p WHERE p.id = i.partition_id OFFSET 0
    ) p
    CROSS JOIN LATERAL (
        SELECT s.end_offset, s.created_at FROM queen.log_segments s
        WHERE s.partition_id = i.partition_id ORDER BY s.base_offset DESC LIMIT 1
    ) newest
    CROSS JOIN LATERAL (
        SELECT count(*) > 0 AS present,
               COALESCE(max(c.committed), CASE
                   WHEN i.seed_from = '-infinity' OR p.created_at >= i.seed_birth THEN p.log_start - 1
                   WHEN i.seed_from = 'infinity' THEN GREATEST(p.last_offset, newest.end_offset)
                   ELSE COALESCE(
                       (SELECT s.base_offset - 1 FROM queen.log_segments s
                        WHERE s.partition_id = i.partition_id AND s.created_at >= i.seed_from
                        ORDER BY s.base_offset LIMIT 1),
                       GREATEST(p.last_offset, newest.end_offset))
               END) AS committed
        FROM queen.log_consumers c
        WHERE c.partition_id = i.partition_id AND c.consumer_group = $2
    ) c0
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN newest.end_offset <= c0.committed THEN FALSE
            WHEN i.hold <= 0 AND i.delayed <= 0 THEN TRUE
            ELSE COALESCE((
                SELECT (i.delayed <= 0 OR head.created_at <= clock_timestamp() - make_interval(secs => i.delayed))
                   AND (i.hold <= 0
                        OR CASE WHEN $9 THEN
                               newest.created_at <= clock_timestamp() - make_interval(secs => i.hold)
                               OR head.created_at <= clock_timestamp() - make_interval(secs => 2 * i.hold)
                           ELSE
                               newest.end_offset - c0.committed >= $10
                               OR head.created_at <= clock_timestamp() - make_interval(secs => i.hold)
                           END)
                FROM queen.log_segments head
                WHERE head.partition_id = i.partition_id AND head.base_offset <= GREATEST(c0.committed + 1, p.log_start)
                ORDER BY head.base_offset DESC LIMIT 1), TRUE)
        END AS ready
    ) v
    LEFT JOIN LATERAL (
        SELECT c.committed
        FROM queen.log_consumers c
        WHERE c.partition_id = i.partition_id AND c.consumer_group = $2
          AND c0.present AND v.ready AND c.committed < newest.end_offset
          AND (c.worker_id IS NULL OR c.lease_expires_at <= clock_timestamp())
          AND (c.retry_at IS NULL OR c.retry_at <= clock_timestamp())
        FOR UPDATE SKIP LOCKED
    ) c ON TRUE
    -- A cursor that is made refers to its partition. One that is being deleted is skipped: waiting for it while cursors
    -- are held would deadlock with the deletion, which waits for cursors.
    LEFT JOIN LATERAL (
        SELECT p.id
        FROM queen.log_partitions p
        WHERE p.id = i.partition_id AND NOT c0.present AND v.ready
        FOR KEY SHARE SKIP LOCKED
    ) home ON TRUE
    WHERE v.ready
      AND CASE
          WHEN c0.present THEN c.committed IS NOT NULL
          ELSE home.id IS NOT NULL AND pg_try_advisory_xact_lock(hashtextextended(i.partition_id::text || '/' || $2, 7781200))
      END
    LIMIT $6
), spans AS MATERIALIZED (
    SELECT h.ord, h.partition_id, h.lease_seconds, h.present, h.committed,
           s.base_offset, s.created_at, s.blob, GREATEST(s.base_offset, h.committed + 1) AS first_offset,
           s.end_offset - GREATEST(s.base_offset, h.committed + 1) + 1 AS available,
           (sum(s.end_offset - GREATEST(s.base_offset, h.committed + 1) + 1)
               OVER (ORDER BY h.ord, s.base_offset))::int8 AS through,
           (sum(octet_length(s.blob)) OVER (ORDER BY h.ord, s.base_offset)) - octet_length(s.blob) AS bytes_before
    FROM held h
    CROSS JOIN LATERAL (
        -- the segment that covers the next offset, or after a retention gap the one that follows
        SELECT COALESCE(
            (SELECT k.base_offset FROM (
                 SELECT s.base_offset, s.end_offset FROM queen.log_segments s
                 WHERE s.partition_id = h.partition_id AND s.base_offset <= h.committed + 1
                 ORDER BY s.base_offset DESC LIMIT 1
             ) k WHERE k.end_offset > h.committed),
            (SELECT s.base_offset FROM queen.log_segments s
             WHERE s.partition_id = h.partition_id AND s.base_offset > h.committed
             ORDER BY s.base_offset LIMIT 1)
        ) AS base_offset
    ) start
    CROSS JOIN LATERAL (
        SELECT s.base_offset, s.end_offset, s.created_at, s.blob
        FROM queen.log_segments s
        WHERE s.partition_id = h.partition_id AND s.base_offset >= start.base_offset
          AND s.base_offset < GREATEST(start.base_offset, h.committed + 1) + $5
          AND (h.delayed <= 0 OR s.created_at <= clock_timestamp() - make_interval(secs => h.delayed))
        OFFSET 0
    ) s
), taken AS MATERIALIZED (
    SELECT t.*, LEAST(t.available, $5 - (t.through - t.available)) AS take
    FROM spans t
    WHERE t.through - t.available < $5 AND t.bytes_before < $13::int8
), claims AS MATERIALIZED (
    SELECT t.ord, t.partition_id, t.present, t.committed, t.lease_seconds, min(t.first_offset) AS head,
           max(t.first_offset + t.take - 1) AS tail, sum(t.take)::int8 AS messages
    FROM taken t
    GROUP BY t.ord, t.partition_id, t.present, t.committed, t.lease_seconds
), opened AS (
    INSERT INTO queen.log_consumers AS c
        (partition_id, consumer_group, committed, batch_end, worker_id, lease_expires_at, lease_acquired_at,
         attempt_offset, attempt_count, total_consumed)
    SELECT k.partition_id, $2, CASE WHEN $3::text IS NULL THEN k.tail ELSE k.committed END,
           CASE WHEN $3::text IS NOT NULL THEN k.tail END, $3,
           CASE WHEN $3::text IS NOT NULL THEN clock_timestamp() + make_interval(secs => k.lease_seconds) END,
           CASE WHEN $3::text IS NOT NULL THEN clock_timestamp() END,
           CASE WHEN $3::text IS NOT NULL THEN k.head END, CASE WHEN $3::text IS NOT NULL THEN 1 ELSE 0 END,
           CASE WHEN $3::text IS NULL THEN k.messages ELSE 0 END
    FROM claims k
    WHERE NOT k.present
    ON CONFLICT (partition_id, consumer_group) DO NOTHING
    RETURNING c.partition_id, 1 AS attempt, c.ctid AS address
), renewed AS (
    INSERT INTO queen.log_consumers AS c
        (partition_id, consumer_group, committed, batch_end, worker_id, lease_expires_at, lease_acquired_at,
         attempt_offset, attempt_count, total_consumed)
    SELECT k.partition_id, $2, CASE WHEN $3::text IS NULL THEN k.tail ELSE k.committed END,
           CASE WHEN $3::text IS NOT NULL THEN k.tail END, $3,
           CASE WHEN $3::text IS NOT NULL THEN clock_timestamp() + make_interval(secs => k.lease_seconds) END,
           CASE WHEN $3::text IS NOT NULL THEN clock_timestamp() END,
           k.head, 1, k.messages
    FROM claims k
    WHERE k.present
    ON CONFLICT (partition_id, consumer_group) DO UPDATE SET
        committed = excluded.committed,
        batch_end = excluded.batch_end,
        worker_id = excluded.worker_id,
        lease_expires_at = excluded.lease_expires_at,
        lease_acquired_at = excluded.lease_acquired_at,
        lease_conflated = FALSE,
        retry_at = NULL,
        attempt_count = CASE
            WHEN excluded.worker_id IS NULL THEN c.attempt_count
            WHEN c.attempt_offset = excluded.attempt_offset THEN c.attempt_count + 1
            ELSE 1
        END,
        attempt_offset = CASE WHEN excluded.worker_id IS NULL THEN c.attempt_offset ELSE excluded.attempt_offset END,
        total_consumed = c.total_consumed + CASE WHEN excluded.worker_id IS NULL THEN excluded.total_consumed ELSE 0 END
    RETURNING c.partition_id, CASE WHEN c.worker_id IS NULL THEN 1 ELSE c.attempt_count END AS attempt,
              c.ctid AS address
)
SELECT (t.ord - 1)::int4 AS request, t.partition_id, t.base_offset, (t.first_offset - t.base_offset)::int4 AS first_frame,
       t.take::int4 AS frames, t.created_at, t.blob, w.attempt::int4 AS attempt, w.address
FROM taken t
JOIN (SELECT * FROM opened UNION ALL SELECT * FROM renewed) w ON w.partition_id = t.partition_id
ORDER BY t.ord, t.base_offset
