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
    SELECT p.id, p.address, p.log_start, r.tenant_id, r.floor, r.leased, r.age_before, r.done_before, r.evict_before,
           r.hashes_since,
           newest.end_offset AS newest_end, newest.created_at AS newest_at
    FROM (
        SELECT p.id, p.ctid AS address, p.queue_id, p.name, p.log_start
        FROM queen.log_partitions p
        WHERE p.id = $1::uuid
        OFFSET 0
    ) p
    --@ part retention_rules
    LEFT JOIN LATERAL (
        SELECT s.end_offset, s.created_at
        FROM queen.log_segments s
        WHERE s.partition_id = p.id AND s.base_offset >= p.log_start
        ORDER BY s.base_offset DESC
        LIMIT 1
    ) newest ON TRUE
), head AS MATERIALIZED (
    SELECT s.base_offset, s.end_offset, s.created_at,
    --@ part retention_kind
           AS kind,
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
