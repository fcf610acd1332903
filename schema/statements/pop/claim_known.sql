-- Leases partitions whose cursors the caller knows the address of, and hands out their next messages: what claim.sql does
-- in the common case, at a fraction of its cost, because nothing in it looks for a cursor, makes one, or holds back what
-- is not due. Several pops share one execution and one commit; each has its own budget of messages and bytes, which runs
-- over its candidates in order.
--
-- Only what is leased comes back. A candidate without a row is anything else: its cursor lies elsewhere, is not free or
-- locked, nothing is pending, or the budget was spent before its turn; claim.sql then says what is the case.
--
-- No two candidates of one execution may name the same cursor. A claim need not wait for the disk ($8): a crash of the
-- server forgets the lease and the messages are delivered again.
--
-- Caller: queen-storage pop/short.rs. Locks: log_consumers in input order, SKIP LOCKED. Writes: log_consumers.
-- Per candidate: $1 pop int4[], $2 partition uuid[], $3 address of the cursor tid[], $4 group text[], $5 worker text[],
-- $6 lease seconds int4[], $7 messages of its pop int8[]
-- $8 do not wait for the disk boolean, $9 blob bytes int8 after which a pop takes no further segment
WITH spans AS MATERIALIZED (
    SELECT h.ord, h.worker, h.lease_seconds, h.messages, h.address, h.log_end, s.base_offset, s.created_at, s.blob,
           GREATEST(s.base_offset, h.committed + 1) AS first_offset, s.end_offset,
           (sum(s.end_offset - GREATEST(s.base_offset, h.committed + 1) + 1) OVER upto)::int8 AS through,
           (sum(octet_length(s.blob)) OVER upto)::int8 - octet_length(s.blob) AS bytes_before
    FROM (
        SELECT i.ord, i.pop, i.partition_id, i.worker, i.lease_seconds, i.messages, c.address, c.committed,
               newest.end_offset AS log_end
        FROM unnest($1::int4[], $2::uuid[], $3::tid[], $4::text[], $5::text[], $6::int4[], $7::int8[])
            WITH ORDINALITY AS i (pop, partition_id, address, consumer_group, worker, lease_seconds, messages, ord)
        CROSS JOIN LATERAL (
            SELECT s.end_offset FROM queen.log_segments s
            WHERE s.partition_id = i.partition_id ORDER BY s.base_offset DESC LIMIT 1
        ) newest
        CROSS JOIN LATERAL (
            SELECT c.ctid AS address, c.committed
            FROM queen.log_consumers c
            WHERE c.ctid = i.address AND c.partition_id = i.partition_id AND c.consumer_group = i.consumer_group
              AND c.committed < newest.end_offset
              AND (c.worker_id IS NULL OR c.lease_expires_at <= clock_timestamp())
              AND (c.retry_at IS NULL OR c.retry_at <= clock_timestamp())
            FOR UPDATE SKIP LOCKED
        ) c
        OFFSET 0
    ) h
    CROSS JOIN LATERAL (
        -- The segment that covers the next offset. There is none behind a retention gap: left to claim.sql.
        SELECT k.base_offset FROM queen.log_segments k
        WHERE k.partition_id = h.partition_id AND k.base_offset <= h.committed + 1
        ORDER BY k.base_offset DESC LIMIT 1
    ) start
    CROSS JOIN LATERAL (
        SELECT s.base_offset, s.end_offset, s.created_at, s.blob
        FROM queen.log_segments s
        WHERE s.partition_id = h.partition_id AND s.base_offset >= start.base_offset
          AND s.base_offset <= h.committed + h.messages AND s.end_offset > h.committed
        OFFSET 0
    ) s
    WINDOW upto AS (PARTITION BY h.pop ORDER BY h.ord, s.base_offset)
), leased AS (
    UPDATE queen.log_consumers c
    SET batch_end = k.tail,
        worker_id = k.worker,
        lease_expires_at = statement_timestamp() + make_interval(secs => k.lease_seconds),
        lease_acquired_at = statement_timestamp(),
        lease_conflated = FALSE,
        active_at = statement_timestamp(),
        retry_at = NULL,
        attempt_count = CASE WHEN c.attempt_offset = k.head THEN c.attempt_count + 1 ELSE 1 END,
        attempt_offset = k.head
    FROM (
        SELECT t.ord, t.address, t.worker, t.lease_seconds, min(t.first_offset) AS head,
               max(LEAST(t.end_offset, t.end_offset - (t.through - t.messages))) AS tail
        FROM spans t
        WHERE t.through - (t.end_offset - t.first_offset + 1) < t.messages AND t.bytes_before < $9::int8
        GROUP BY t.ord, t.address, t.worker, t.lease_seconds
    ) k
    WHERE c.ctid = k.address
    RETURNING k.ord, k.tail, c.ctid AS address, c.attempt_count AS attempt
)
SELECT (l.ord - 1)::int4 AS candidate, t.log_end, l.address, l.attempt, t.base_offset,
       (t.first_offset - t.base_offset)::int4 AS first_frame,
       (LEAST(t.end_offset, l.tail) - t.first_offset + 1)::int4 AS frames, t.created_at, t.blob,
       CASE WHEN $8 THEN (SELECT set_config('synchronous_commit', 'off', TRUE)) END AS relaxed
FROM leased l
JOIN spans t ON t.ord = l.ord AND t.first_offset <= l.tail
ORDER BY l.ord, t.base_offset
