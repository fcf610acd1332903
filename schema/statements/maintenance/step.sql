-- Deletes the oldest segments of one partition as far as the rules of its queue allow, at most so many. The hashes of
-- those that are inside the deduplication window move to log_txns first. Where the log begins now, and where it ends,
-- is written to the partition, since its end can no longer be read off the segments once they are gone.
--
-- Stamps and offsets ascend along a log, so what may go is a prefix. Whole segments only. Nothing below log_start is
-- looked at: there are the dead index entries of the steps before this one, as long as some transaction keeps them.
--
-- No row: the partition is gone.
-- Caller: queen-storage maintenance/retention.rs, after push/lock.sql in the same transaction, so that the snapshot is
-- younger than the lock. Locks: none beyond the partition, which is held. Writes: log_txns, log_segments,
-- log_partitions, retention_history.
-- $1 partition uuid, $2 time of the cycle timestamptz, $3 segments int8, $4 do not wait for the disk boolean
WITH rules AS MATERIALIZED (
    SELECT p.id, p.address, p.log_start, q.tenant_id, c.floor,
           CASE WHEN q.protect_leased THEN c.leased ELSE 9223372036854775806 END AS leased,
           $2::timestamptz - make_interval(secs => q.age) AS age_before,
           $2::timestamptz - make_interval(secs => q.done) AS done_before,
           $2::timestamptz - make_interval(secs => q.evict) AS evict_before,
           statement_timestamp()
               - make_interval(secs => GREATEST(q.dedup_window_seconds, q.completed_retention_seconds, 900)) AS hashes_since,
           newest.end_offset AS newest_end, newest.created_at AS newest_at
    FROM (
        SELECT p.id, p.ctid AS address, p.queue_id, p.name, p.log_start
        FROM queen.log_partitions p
        WHERE p.id = $1::uuid
        OFFSET 0
    ) p
    CROSS JOIN LATERAL (
        SELECT CASE WHEN q.retention_enabled AND q.retention_seconds > 0 THEN q.retention_seconds END AS age,
               CASE WHEN q.retention_enabled AND q.completed_retention_seconds > 0
                    THEN q.completed_retention_seconds END AS done,
               CASE WHEN q.max_wait_time_seconds > 0 THEN q.max_wait_time_seconds END AS evict,
               q.id AS queue_id, q.tenant_id, q.protect_leased, q.dedup_window_seconds, q.completed_retention_seconds,
               CASE WHEN q.group_expiry_seconds > 0
                    THEN $2::timestamptz - make_interval(secs => q.group_expiry_seconds) END AS alive_since
        FROM queen.queues q
        WHERE q.id = p.queue_id
        OFFSET 0
    ) q
    LEFT JOIN LATERAL (
        SELECT s.created_at
        FROM queen.log_segments s
        WHERE s.partition_id = p.id AND s.base_offset >= p.log_start
        ORDER BY s.base_offset
        LIMIT 1
    ) o ON TRUE
    LEFT JOIN LATERAL (
        SELECT s.end_offset, s.created_at
        FROM queen.log_segments s
        WHERE s.partition_id = p.id AND s.base_offset >= p.log_start
        ORDER BY s.base_offset DESC
        LIMIT 1
    ) newest ON TRUE
    -- The lowest position that a group still needs. Named groups decide, queue mode alone if there is none. A registered
    -- group without a cursor owes everything; one that has not been seen for groupExpirySeconds does not count.
    CROSS JOIN LATERAL (
        SELECT CASE
                   WHEN EXISTS (
                       SELECT 1
                       FROM queen.consumer_groups_metadata m
                       WHERE m.queue_id = q.queue_id AND m.partition_name IN ('', p.name)
                         AND m.consumer_group <> '__QUEUE_MODE__'
                         AND (q.alive_since IS NULL OR GREATEST(m.created_at, o.created_at) > q.alive_since)
                         AND NOT EXISTS (
                             SELECT 1 FROM queen.log_consumers c
                             WHERE c.partition_id = p.id AND c.consumer_group = m.consumer_group
                         )
                   ) THEN -1
                   ELSE COALESCE(
                       min(c.committed) FILTER (WHERE c.consumer_group <> '__QUEUE_MODE__' AND c.alive),
                       min(c.committed) FILTER (WHERE c.consumer_group = '__QUEUE_MODE__'),
                       -1
                   )
               END AS floor,
               COALESCE(min(c.committed) FILTER (WHERE c.lease_expires_at > clock_timestamp()), 9223372036854775806)
                   AS leased
        FROM (
            SELECT c.consumer_group, c.committed, c.lease_expires_at,
                   q.alive_since IS NULL OR GREATEST(c.active_at, c.lease_expires_at) > q.alive_since AS alive
            FROM queen.log_consumers c
            WHERE c.partition_id = p.id
            OFFSET 0
        ) c
    ) c
), head AS MATERIALIZED (
    SELECT s.base_offset, s.end_offset, s.created_at,
           CASE
               WHEN s.end_offset > r.leased THEN NULL
               WHEN s.created_at < r.age_before THEN 'retention'
               WHEN s.created_at < r.done_before AND s.end_offset <= r.floor THEN 'completed_retention'
               WHEN s.created_at < r.evict_before THEN 'max_wait_time_eviction'
           END AS kind,
           GREATEST(s.end_offset - GREATEST(s.base_offset - 1, r.floor), 0) AS unconsumed,
           s.created_at >= r.hashes_since AS remembered
    FROM rules r
    CROSS JOIN LATERAL (
        SELECT s.base_offset, s.end_offset, s.created_at
        FROM queen.log_segments s
        WHERE s.partition_id = r.id AND s.base_offset >= r.log_start
        ORDER BY s.base_offset
        LIMIT $3::int8
    ) s
), doomed AS MATERIALIZED (
    SELECT h.base_offset, h.end_offset, h.created_at, h.kind, h.unconsumed, h.remembered
    FROM head h
    WHERE h.base_offset < COALESCE((SELECT min(k.base_offset) FROM head k WHERE k.kind IS NULL), 9223372036854775807)
), cut AS MATERIALIZED (
    SELECT count(*) AS segments, max(d.base_offset) AS base_offset, max(d.end_offset) AS end_offset,
           min(d.created_at) FILTER (WHERE d.remembered) AS oldest_moved,
           min(d.base_offset) FILTER (WHERE d.remembered) AS first_moved,
           COALESCE(sum(d.end_offset - d.base_offset + 1), 0)::int8 AS messages,
           COALESCE(sum(d.end_offset - d.base_offset + 1) FILTER (WHERE d.kind = 'retention'), 0)::int8 AS age,
           COALESCE(sum(d.end_offset - d.base_offset + 1) FILTER (WHERE d.kind = 'completed_retention'), 0)::int8 AS done,
           COALESCE(sum(d.end_offset - d.base_offset + 1) FILTER (WHERE d.kind = 'max_wait_time_eviction'), 0)::int8 AS evicted,
           COALESCE(sum(d.unconsumed), 0)::int8 AS unconsumed
    FROM doomed d
), next AS MATERIALIZED (
    SELECT s.created_at
    FROM queen.log_segments s
    WHERE s.partition_id = $1 AND s.base_offset > COALESCE((SELECT c.base_offset FROM cut c), (SELECT r.log_start - 1 FROM rules r))
    ORDER BY s.base_offset
    LIMIT 1
), moved AS (
    INSERT INTO queen.log_txns (partition_id, base_offset, end_offset, created_at, hashes)
    SELECT s.partition_id, s.base_offset, s.end_offset, s.created_at, s.hashes
    FROM queen.log_segments s
    WHERE s.partition_id = $1
      AND s.base_offset >= (SELECT c.first_moved FROM cut c) AND s.base_offset <= (SELECT c.base_offset FROM cut c)
), removed AS (
    DELETE FROM queen.log_segments s
    WHERE s.partition_id = $1
      AND s.base_offset >= (SELECT r.log_start FROM rules r) AND s.base_offset <= (SELECT c.base_offset FROM cut c)
), noted AS (
    INSERT INTO queen.retention_history (partition_id, tenant_id, messages_deleted, retention_type)
    SELECT $1, r.tenant_id, k.messages::int4, k.kind
    FROM rules r
    CROSS JOIN (
        SELECT d.kind, sum(d.end_offset - d.base_offset + 1) AS messages FROM doomed d GROUP BY d.kind
    ) k
), kept AS (
    UPDATE queen.log_partitions p
    SET log_start = GREATEST(p.log_start, c.end_offset + 1),
        last_offset = GREATEST(p.last_offset, r.newest_end),
        oldest_live_at = (SELECT n.created_at FROM next n),
        retention_from = (SELECT n.created_at FROM next n),
        last_write_at = CASE WHEN EXISTS (SELECT 1 FROM next n) THEN p.last_write_at
                             ELSE GREATEST(p.last_write_at, r.newest_at) END,
        txns_start = CASE WHEN p.oldest_txn_at IS NULL THEN GREATEST(p.txns_start, c.first_moved) ELSE p.txns_start END,
        oldest_txn_at = COALESCE(p.oldest_txn_at, c.oldest_moved)
    FROM rules r, cut c
    WHERE p.ctid = r.address
)
SELECT c.segments, c.messages, c.age, c.done, c.evicted, c.unconsumed,
       CASE WHEN $4::boolean THEN (SELECT set_config('synchronous_commit', 'off', TRUE)) END AS relaxed
FROM rules r
CROSS JOIN cut c
