-- Claims named partitions for groups and hands out their next messages: the one place that decides who gets which
-- message. Several pops share one execution and one commit; each has its own budget.
--
-- Per candidate, in input order: is something visible beyond the cursor and is the cursor free? Then its row is locked
-- with SKIP LOCKED (a pop never waits), or, at the group's first claim, made under a try-lock of its own. A pop's budget
-- of messages and bytes runs over its candidates in order. What is handed out is leased, or committed at once with
-- auto-ack. Every candidate comes back with what was found, taken or not: that is what the hot list lives on.
--
-- A cursor is looked for at the address where the broker saw it last, and through the primary key only if it is not
-- there: the newest version is found directly, however many dead ones a transaction held open elsewhere keeps alive
-- (docs/decisions/009). Every other sub-select that names a big table is LATERAL behind OFFSET 0 or LIMIT 1, so the
-- plan has no choice but the primary keys, however wrong the statistics are (docs/decisions/002).
--
-- No two candidates of one execution may name the same cursor. A claim that hands out leases alone need not wait for
-- the disk ($13): a crash of the server forgets the lease and the messages are delivered again.
--
-- Caller: queen-storage pop/claim.rs. Locks: log_consumers in input order, SKIP LOCKED; key share on log_partitions at a
-- group's first claim, SKIP LOCKED. Writes: log_consumers.
-- Per candidate: $1 pop int4[], $2 partition uuid[], $3 address of the cursor tid[] (NULL: unknown), $4 group text[],
-- $5 worker text[] (NULL: auto-ack), $6 lease seconds int4[], $7 delayedProcessing int4[], $8 windowBuffer int4[],
-- $9 windowBuffer holds until quiet boolean[] (else until the first unserved is old enough or enough are gathered),
-- $10 seed from timestamptz[], $11 everything for partitions born since timestamptz[], $12 messages of its pop int8[]
-- $13 do not wait for the disk boolean, $14 enough int8, $15 blob bytes int8 after which a pop takes no further segment
WITH seen AS MATERIALIZED (
    SELECT i.ord, i.pop, i.partition_id, i.consumer_group, i.worker, i.lease_seconds, i.delayed, i.messages,
           k.present, k.address, k.committed, k.busy_until, newest.end_offset AS log_end, v.visible_at, n.now,
           COALESCE(v.visible_at <= n.now, FALSE) AND COALESCE(k.busy_until <= n.now, TRUE) AS ready
    FROM unnest($1::int4[], $2::uuid[], $3::tid[], $4::text[], $5::text[], $6::int4[], $7::int4[], $8::int4[],
                $9::boolean[], $10::timestamptz[], $11::timestamptz[], $12::int8[])
        WITH ORDINALITY AS i (pop, partition_id, address, consumer_group, worker, lease_seconds, delayed, hold, quiet,
                              seed_from, seed_birth, messages, ord)
    CROSS JOIN LATERAL (SELECT clock_timestamp() AS now OFFSET 0) n
    LEFT JOIN LATERAL (
        SELECT c.ctid AS address, c.committed, c.retry_at,
               CASE WHEN c.worker_id IS NOT NULL THEN c.lease_expires_at END AS leased_until
        FROM queen.log_consumers c
        WHERE c.ctid = i.address AND c.partition_id = i.partition_id AND c.consumer_group = i.consumer_group
        OFFSET 0
    ) near ON TRUE
    LEFT JOIN LATERAL (
        SELECT c.ctid AS address, c.committed, c.retry_at,
               CASE WHEN c.worker_id IS NOT NULL THEN c.lease_expires_at END AS leased_until
        FROM queen.log_consumers c
        WHERE near.address IS NULL AND c.partition_id = i.partition_id AND c.consumer_group = i.consumer_group
        OFFSET 0
    ) far ON TRUE
    LEFT JOIN LATERAL (
        SELECT s.end_offset, s.created_at FROM queen.log_segments s
        WHERE s.partition_id = i.partition_id ORDER BY s.base_offset DESC LIMIT 1
    ) newest ON TRUE
    LEFT JOIN LATERAL (
        SELECT p.log_start, p.last_offset, p.created_at FROM queen.log_partitions p
        WHERE p.id = i.partition_id AND (i.hold > 0 OR i.delayed > 0 OR (near.address IS NULL AND far.address IS NULL))
        OFFSET 0
    ) p ON TRUE
    CROSS JOIN LATERAL (
        SELECT near.address IS NOT NULL OR far.address IS NOT NULL AS present,
               COALESCE(near.address, far.address) AS address,
               -- LEAST and GREATEST pass over NULL
               GREATEST(near.leased_until, far.leased_until, near.retry_at, far.retry_at) AS busy_until,
               COALESCE(near.committed, far.committed, CASE
                   WHEN i.seed_from = '-infinity' OR p.created_at >= i.seed_birth THEN p.log_start - 1
                   WHEN i.seed_from = 'infinity' THEN GREATEST(p.last_offset, newest.end_offset)
                   ELSE COALESCE(
                       (SELECT s.base_offset - 1 FROM queen.log_segments s
                        WHERE s.partition_id = i.partition_id AND s.created_at >= i.seed_from
                        ORDER BY s.base_offset LIMIT 1),
                       GREATEST(p.last_offset, newest.end_offset))
               END) AS committed
        OFFSET 0
    ) k
    LEFT JOIN LATERAL (
        SELECT CASE
            WHEN newest.end_offset <= k.committed THEN NULL
            WHEN i.hold <= 0 AND i.delayed <= 0 THEN '-infinity'
            ELSE COALESCE((
                SELECT GREATEST(
                    CASE WHEN i.delayed > 0 THEN head.created_at + make_interval(secs => i.delayed) END,
                    CASE
                        WHEN i.hold <= 0 THEN NULL
                        WHEN i.quiet THEN LEAST(newest.created_at + make_interval(secs => i.hold),
                                                head.created_at + make_interval(secs => 2 * i.hold))
                        WHEN newest.end_offset - k.committed >= $14 THEN NULL
                        ELSE head.created_at + make_interval(secs => i.hold)
                    END,
                    '-infinity')
                FROM queen.log_segments head
                WHERE head.partition_id = i.partition_id AND head.base_offset <= GREATEST(k.committed + 1, p.log_start)
                ORDER BY head.base_offset DESC LIMIT 1), '-infinity')
        END AS visible_at
        WHERE newest.end_offset IS NOT NULL
        OFFSET 0
    ) v ON TRUE
), held AS MATERIALIZED (
    SELECT s.ord, s.pop, s.partition_id, s.consumer_group, s.worker, s.lease_seconds, s.delayed, s.messages, s.present,
           c.address, COALESCE(c.committed, s.committed) AS committed
    FROM seen s
    LEFT JOIN LATERAL (
        SELECT c.ctid AS address, c.committed
        FROM queen.log_consumers c
        WHERE s.ready AND s.present AND c.ctid = s.address
          AND c.partition_id = s.partition_id AND c.consumer_group = s.consumer_group AND c.committed < s.log_end
          AND (c.worker_id IS NULL OR c.lease_expires_at <= clock_timestamp())
          AND (c.retry_at IS NULL OR c.retry_at <= clock_timestamp())
        FOR UPDATE SKIP LOCKED
    ) c ON TRUE
    -- A cursor is made for a partition that is held (docs/decisions/011). One that is being deleted is skipped: waiting
    -- for it while cursors are held would deadlock with the deletion, which waits for cursors.
    LEFT JOIN LATERAL (
        SELECT p.id
        FROM queen.log_partitions p
        WHERE p.id = s.partition_id AND NOT s.present AND s.ready
        FOR KEY SHARE SKIP LOCKED
    ) home ON TRUE
    WHERE s.ready
      AND CASE
          WHEN s.present THEN c.address IS NOT NULL
          ELSE home.id IS NOT NULL
               AND pg_try_advisory_xact_lock(hashtextextended(s.consumer_group, uuid_hash_extended(s.partition_id, 7781200)))
      END
), spans AS MATERIALIZED (
    SELECT h.ord, h.partition_id, h.consumer_group, h.worker, h.lease_seconds, h.present, h.address, h.committed,
           h.messages, s.base_offset, s.created_at, s.blob,
           GREATEST(s.base_offset, h.committed + 1) AS first_offset,
           s.end_offset - GREATEST(s.base_offset, h.committed + 1) + 1 AS available,
           (sum(s.end_offset - GREATEST(s.base_offset, h.committed + 1) + 1) OVER upto)::int8 AS through,
           (sum(octet_length(s.blob)) OVER upto) - octet_length(s.blob) AS bytes_before
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
        OFFSET 0
    ) start
    CROSS JOIN LATERAL (
        SELECT s.base_offset, s.end_offset, s.created_at, s.blob
        FROM queen.log_segments s
        WHERE s.partition_id = h.partition_id AND s.base_offset >= start.base_offset
          AND s.base_offset < GREATEST(start.base_offset, h.committed + 1) + h.messages
          AND (h.delayed <= 0 OR s.created_at <= clock_timestamp() - make_interval(secs => h.delayed))
        OFFSET 0
    ) s
    WINDOW upto AS (PARTITION BY h.pop ORDER BY h.ord, s.base_offset)
), taken AS MATERIALIZED (
    SELECT t.ord, t.partition_id, t.consumer_group, t.worker, t.lease_seconds, t.present, t.address, t.committed,
           t.base_offset, t.created_at, t.blob, t.first_offset,
           LEAST(t.available, t.messages - (t.through - t.available)) AS take
    FROM spans t
    WHERE t.through - t.available < t.messages AND t.bytes_before < $15::int8
), claims AS MATERIALIZED (
    SELECT t.ord, t.partition_id, t.consumer_group, t.worker, t.present, t.address, t.committed,
           min(t.first_offset) AS head, max(t.first_offset + t.take - 1) AS tail, sum(t.take)::int8 AS messages,
           clock_timestamp() AS now, clock_timestamp() + make_interval(secs => t.lease_seconds) AS expires_at
    FROM taken t
    GROUP BY t.ord, t.partition_id, t.consumer_group, t.worker, t.lease_seconds, t.present, t.address, t.committed
), opened AS (
    INSERT INTO queen.log_consumers AS c
        (partition_id, consumer_group, committed, batch_end, worker_id, lease_expires_at, lease_acquired_at,
         attempt_offset, attempt_count, total_consumed)
    SELECT k.partition_id, k.consumer_group, CASE WHEN k.worker IS NULL THEN k.tail ELSE k.committed END,
           CASE WHEN k.worker IS NOT NULL THEN k.tail END, k.worker,
           CASE WHEN k.worker IS NOT NULL THEN k.expires_at END, CASE WHEN k.worker IS NOT NULL THEN k.now END,
           CASE WHEN k.worker IS NOT NULL THEN k.head END, CASE WHEN k.worker IS NOT NULL THEN 1 ELSE 0 END,
           CASE WHEN k.worker IS NULL THEN k.messages ELSE 0 END
    FROM claims k
    WHERE NOT k.present
    ON CONFLICT (partition_id, consumer_group) DO NOTHING
    RETURNING c.partition_id, c.consumer_group, c.ctid AS address, TRUE AS opened
), renewed AS (
    UPDATE queen.log_consumers c
    SET committed = CASE WHEN k.worker IS NULL THEN k.tail ELSE c.committed END,
        batch_end = CASE WHEN k.worker IS NOT NULL THEN k.tail END,
        worker_id = k.worker,
        lease_expires_at = CASE WHEN k.worker IS NOT NULL THEN k.expires_at END,
        lease_acquired_at = CASE WHEN k.worker IS NOT NULL THEN k.now END,
        lease_conflated = FALSE,
        active_at = k.now,
        retry_at = NULL,
        attempt_count = CASE
            WHEN k.worker IS NULL THEN c.attempt_count
            WHEN c.attempt_offset = k.head THEN c.attempt_count + 1
            ELSE 1
        END,
        attempt_offset = CASE WHEN k.worker IS NULL THEN c.attempt_offset ELSE k.head END,
        total_consumed = c.total_consumed + CASE WHEN k.worker IS NULL THEN k.messages ELSE 0 END
    FROM claims k
    WHERE k.present AND c.ctid = k.address
    RETURNING k.ord, c.ctid AS address, CASE WHEN c.worker_id IS NULL THEN 1 ELSE c.attempt_count END AS attempt
), given AS MATERIALIZED (
    SELECT r.ord, r.address, r.attempt FROM renewed r
    UNION ALL
    -- FULL, and a condition that does not undo it: such a join is never made by comparing everything with everything
    SELECT k.ord, o.address, 1
    FROM opened o FULL JOIN claims k ON k.partition_id = o.partition_id AND k.consumer_group = o.consumer_group
    WHERE COALESCE(o.opened, FALSE)
)
SELECT (s.ord - 1)::int4 AS candidate, s.committed, s.log_end,
       CASE WHEN s.busy_until > s.now THEN (extract(epoch FROM LEAST(s.busy_until - s.now, '1 day')) * 1000)::int4 END AS busy_ms,
       CASE WHEN s.visible_at > s.now THEN (extract(epoch FROM LEAST(s.visible_at - s.now, '1 day')) * 1000)::int4 END AS hidden_ms,
       h.ord IS NOT NULL AS held, g.address, g.attempt,
       t.base_offset, (t.first_offset - t.base_offset)::int4 AS first_frame, t.take::int4 AS frames, t.created_at, t.blob,
       CASE WHEN $13 THEN (SELECT set_config('synchronous_commit', 'off', TRUE)) END AS relaxed
FROM seen s
LEFT JOIN held h ON h.ord = s.ord
LEFT JOIN given g ON g.ord = s.ord
LEFT JOIN taken t ON t.ord = g.ord
ORDER BY s.ord, t.base_offset
