-- Leases partitions on which the caller knows a group to have no cursor yet, and hands out their first messages: what
-- claim.sql does at a group's first claims of a queue that holds nothing back and that the group reads from its beginning.
-- Half of the work of claim.sql there: nothing is looked up but the newest segment, what is handed out, and that there is
-- no cursor. Several pops
-- share one execution and one commit; each has its own budget of messages and bytes, which runs over its candidates in
-- order.
--
-- A partition is found at the address of its row, which the walk that missed the cursor has seen, and held, so that it is
-- not deleted meanwhile (docs/decisions/011). One that is being deleted is skipped.
--
-- Only what is leased comes back. A candidate without a row is anything else: its partition's row lies elsewhere, the
-- cursor is there or being made, nothing is pending, or the budget was spent before its turn; claim.sql then says what is
-- the case.
--
-- No two candidates of one execution may name the same cursor. A claim need not wait for the disk ($8): a crash of the
-- server forgets the lease and the messages are delivered again.
--
-- Caller: queen-storage pop/short.rs. Locks: key share on log_partitions in input order, SKIP LOCKED. Writes:
-- log_consumers.
-- Per candidate: $1 pop int4[], $2 partition uuid[], $3 address of the partition's row tid[], $4 group text[],
-- $5 worker text[], $6 lease seconds int4[], $7 messages of its pop int8[]
-- $8 do not wait for the disk boolean, $9 blob bytes int8 after which a pop takes no further segment
WITH spans AS MATERIALIZED (
    SELECT h.ord, h.partition_id, h.consumer_group, h.worker, h.lease_seconds, h.messages, h.log_start,
           newest.end_offset AS log_end, s.base_offset, s.end_offset, s.created_at, s.blob,
           GREATEST(s.base_offset, h.log_start) AS first_offset,
           (sum(s.end_offset - GREATEST(s.base_offset, h.log_start) + 1) OVER upto)::int8 AS through,
           (sum(octet_length(s.blob)) OVER upto)::int8 - octet_length(s.blob) AS bytes_before
    FROM (
        SELECT i.ord, i.pop, i.partition_id, i.consumer_group, i.worker, i.lease_seconds, i.messages, home.log_start
        FROM unnest($1::int4[], $2::uuid[], $3::tid[], $4::text[], $5::text[], $6::int4[], $7::int8[])
            WITH ORDINALITY AS i (pop, partition_id, home, consumer_group, worker, lease_seconds, messages, ord)
        CROSS JOIN LATERAL (
            SELECT p.log_start FROM queen.log_partitions p
            WHERE p.ctid = i.home AND p.id = i.partition_id
            FOR KEY SHARE SKIP LOCKED
        ) home
        -- A cursor that is there all the same must not take from the budget.
        LEFT JOIN LATERAL (
            SELECT TRUE AS there FROM queen.log_consumers c
            WHERE c.partition_id = i.partition_id AND c.consumer_group = i.consumer_group
            OFFSET 0
        ) c ON TRUE
        -- Two that make the same cursor do not wait for each other; claim.sql takes the same lock.
        WHERE c.there IS NULL
          AND pg_try_advisory_xact_lock(hashtextextended(i.consumer_group, uuid_hash_extended(i.partition_id, 7781200)))
        OFFSET 0
    ) h
    CROSS JOIN LATERAL (
        SELECT s.end_offset FROM queen.log_segments s
        WHERE s.partition_id = h.partition_id ORDER BY s.base_offset DESC LIMIT 1
    ) newest
    CROSS JOIN LATERAL (
        -- Behind a retention gap there may be nothing so near: left to claim.sql.
        SELECT s.base_offset, s.end_offset, s.created_at, s.blob
        FROM queen.log_segments s
        WHERE s.partition_id = h.partition_id AND s.base_offset < h.log_start + h.messages
          AND s.end_offset >= h.log_start
        OFFSET 0
    ) s
    WINDOW upto AS (PARTITION BY h.pop ORDER BY h.ord, s.base_offset)
), opened AS (
    INSERT INTO queen.log_consumers AS c
        (partition_id, consumer_group, committed, batch_end, worker_id, lease_expires_at, lease_acquired_at,
         attempt_offset, attempt_count)
    SELECT t.partition_id, t.consumer_group, t.log_start - 1,
           max(LEAST(t.end_offset, t.end_offset - (t.through - t.messages))), t.worker,
           statement_timestamp() + make_interval(secs => t.lease_seconds), statement_timestamp(), min(t.first_offset), 1
    FROM spans t
    WHERE t.through - (t.end_offset - t.first_offset + 1) < t.messages AND t.bytes_before < $9::int8
    GROUP BY t.ord, t.partition_id, t.consumer_group, t.worker, t.lease_seconds, t.log_start
    ON CONFLICT (partition_id, consumer_group) DO NOTHING
    RETURNING c.partition_id, c.consumer_group, c.batch_end AS tail, c.ctid AS address
)
SELECT (t.ord - 1)::int4 AS candidate, t.log_end, o.address, 1 AS attempt, t.base_offset,
       (t.first_offset - t.base_offset)::int4 AS first_frame,
       (LEAST(t.end_offset, o.tail) - t.first_offset + 1)::int4 AS frames, t.created_at, t.blob,
       CASE WHEN $8 THEN (SELECT set_config('synchronous_commit', 'off', TRUE)) END AS relaxed
-- FULL, and a condition that does not undo it: such a join is never made by comparing everything with everything
FROM opened o FULL JOIN spans t ON t.partition_id = o.partition_id AND t.consumer_group = o.consumer_group
WHERE COALESCE(t.first_offset <= o.tail, FALSE)
ORDER BY t.ord, t.base_offset
