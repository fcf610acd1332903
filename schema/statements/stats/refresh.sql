-- Recomputes the counters of every queue, namespace, task and tenant, and of all together: one pass over the partitions,
-- a probe at the end of each log, one where the slowest consumer stands, and short index ranges for cursors and dead
-- letters; no message is read. Rates are taken from what was appended and consumed in all since the last snapshot, if
-- that is 3 seconds ago or more. The namespaces and tasks that are empty are not listed.
-- Caller: queen-storage stats.rs, in a transaction with prune.sql. Locks: stats by key. Writes: stats.
WITH per AS MATERIALIZED (
    SELECT q.tenant_id, q.id AS queue_id, COALESCE(q.namespace, '') AS namespace, COALESCE(q.task, '') AS task,
           p.id AS partition_id, n.appended, n.consumed, n.total, n.backlog, LEAST(c.leased, n.backlog)::int8 AS processing,
           d.dead_letter, GREATEST(n.total - n.backlog - d.dead_letter, 0) AS completed, pending.created_at AS pending_at,
           GREATEST(extract(epoch FROM now() - pending.created_at), 0)::int8 AS lag
    FROM queen.queues q
    LEFT JOIN queen.log_partitions p ON p.queue_id = q.id
    LEFT JOIN LATERAL (
        SELECT s.base_offset, s.end_offset, s.created_at FROM queen.log_segments s
        WHERE s.partition_id = p.id ORDER BY s.base_offset DESC LIMIT 1
    ) newest ON TRUE
    CROSS JOIN LATERAL (
        SELECT
            COALESCE(
                min(c.committed) FILTER (WHERE c.consumer_group <> '__QUEUE_MODE__'), min(c.committed), -1
            ) AS worst,
            COALESCE(
                sum(c.batch_end - GREATEST(c.committed, p.log_start - 1)) FILTER (WHERE c.lease_expires_at > now()), 0
            ) AS leased
        FROM queen.log_consumers c
        WHERE c.partition_id = p.id
    ) c
    CROSS JOIN LATERAL (
        -- Without any dead letters none is looked for. Every id is above this one: one look at the index tells.
        SELECT count(*) AS dead_letter FROM queen.log_dlq d
        WHERE (SELECT EXISTS (SELECT 1 FROM queen.log_dlq WHERE partition_id > '00000000-0000-0000-0000-000000000000'))
          AND d.partition_id = p.id
    ) d
    CROSS JOIN LATERAL (
        SELECT COALESCE(e.log_end + 1, 0) AS appended,
               GREATEST(LEAST(c.worst, e.log_end), p.log_start - 1, -1) + 1 AS consumed,
               COALESCE(GREATEST(e.log_end - p.log_start + 1, 0), 0) AS total,
               COALESCE(GREATEST(e.log_end - GREATEST(c.worst, p.log_start - 1), 0), 0) AS backlog,
               GREATEST(c.worst + 1, p.log_start) AS next_offset
        FROM (SELECT GREATEST(p.last_offset, newest.end_offset) AS log_end) e
    ) n
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN n.backlog <= 0 THEN NULL
            WHEN newest.base_offset <= n.next_offset THEN newest.created_at
            ELSE (SELECT s.created_at FROM queen.log_segments s
                  WHERE s.partition_id = p.id AND s.base_offset <= n.next_offset
                  ORDER BY s.base_offset DESC LIMIT 1)
        END AS created_at
        OFFSET 0
    ) pending
), summed AS MATERIALIZED (
    SELECT CASE
               WHEN GROUPING(queue_id) = 0 THEN 'queue'
               WHEN GROUPING(namespace) = 0 THEN 'namespace'
               WHEN GROUPING(task) = 0 THEN 'task'
               ELSE 'system'
           END AS stat_type,
           CASE
               WHEN GROUPING(queue_id) = 0 THEN queue_id::text
               WHEN GROUPING(namespace) = 0 THEN tenant_id::text || '/' || namespace
               WHEN GROUPING(task) = 0 THEN tenant_id::text || '/' || task
               WHEN GROUPING(tenant_id) = 0 THEN tenant_id::text
               ELSE 'global'
           END AS stat_key,
           tenant_id, queue_id,
           CASE WHEN GROUPING(queue_id) = 0 THEN count(partition_id) ELSE count(DISTINCT queue_id) END AS children,
           COALESCE(sum(appended), 0)::int8 AS appended, COALESCE(sum(consumed), 0)::int8 AS consumed,
           COALESCE(sum(total), 0)::int8 AS total, COALESCE(sum(backlog), 0)::int8 AS pending,
           COALESCE(sum(processing), 0)::int8 AS processing, COALESCE(sum(completed), 0)::int8 AS completed,
           COALESCE(sum(dead_letter), 0)::int8 AS dead_letter, min(pending_at) AS oldest_pending_at,
           COALESCE(avg(lag) FILTER (WHERE backlog > 0), 0)::int8 AS avg_lag,
           COALESCE(max(lag) FILTER (WHERE backlog > 0), 0) AS max_lag,
           COALESCE(min(lag) FILTER (WHERE backlog > 0), 0) AS min_lag,
           COALESCE(percentile_disc(0.5) WITHIN GROUP (ORDER BY lag) FILTER (WHERE backlog > 0), 0) AS median_lag,
           COALESCE(avg(backlog) FILTER (WHERE backlog > 0), 0)::int8 AS avg_offset,
           COALESCE(max(backlog) FILTER (WHERE backlog > 0), 0)::int8 AS max_offset,
           COALESCE(min(backlog) FILTER (WHERE backlog > 0), 0)::int8 AS min_offset,
           COALESCE(percentile_disc(0.5) WITHIN GROUP (ORDER BY backlog) FILTER (WHERE backlog > 0), 0)::int8
               AS median_offset,
           namespace, task
    FROM per
    GROUP BY GROUPING SETS ((tenant_id, queue_id), (tenant_id, namespace), (tenant_id, task), (tenant_id), ())
)
INSERT INTO queen.stats AS t (
    stat_type, stat_key, tenant_id, queue_id, child_count, total_messages, pending_messages, processing_messages,
    completed_messages, dead_letter_messages, oldest_pending_at, avg_lag_seconds, max_lag_seconds, min_lag_seconds,
    median_lag_seconds, avg_offset_lag, max_offset_lag, min_offset_lag, median_offset_lag, prev_total_messages,
    prev_completed_messages, prev_snapshot_at, last_scanned_at, last_computed_at
)
SELECT s.stat_type, s.stat_key, s.tenant_id, s.queue_id, s.children, s.total, s.pending, s.processing, s.completed,
       s.dead_letter, s.oldest_pending_at, s.avg_lag, s.max_lag, s.min_lag, s.median_lag, s.avg_offset, s.max_offset,
       s.min_offset, s.median_offset, s.appended, s.consumed, now(), now(), now()
FROM summed s
WHERE s.stat_type NOT IN ('namespace', 'task') OR COALESCE(s.namespace, s.task) <> ''
ORDER BY s.stat_type, s.stat_key COLLATE "C"
ON CONFLICT (stat_type, stat_key) DO UPDATE SET
    tenant_id = excluded.tenant_id,
    queue_id = excluded.queue_id,
    child_count = excluded.child_count,
    total_messages = excluded.total_messages,
    pending_messages = excluded.pending_messages,
    processing_messages = excluded.processing_messages,
    completed_messages = excluded.completed_messages,
    dead_letter_messages = excluded.dead_letter_messages,
    oldest_pending_at = excluded.oldest_pending_at,
    avg_lag_seconds = excluded.avg_lag_seconds,
    max_lag_seconds = excluded.max_lag_seconds,
    min_lag_seconds = excluded.min_lag_seconds,
    median_lag_seconds = excluded.median_lag_seconds,
    avg_offset_lag = excluded.avg_offset_lag,
    max_offset_lag = excluded.max_offset_lag,
    min_offset_lag = excluded.min_offset_lag,
    median_offset_lag = excluded.median_offset_lag,
    ingested_per_second = CASE WHEN t.prev_snapshot_at <= now() - interval '3 seconds' THEN LEAST(GREATEST(
        (excluded.prev_total_messages - t.prev_total_messages)
            / extract(epoch FROM now() - t.prev_snapshot_at)::numeric, 0), 99999999) ELSE t.ingested_per_second END,
    processed_per_second = CASE WHEN t.prev_snapshot_at <= now() - interval '3 seconds' THEN LEAST(GREATEST(
        (excluded.prev_completed_messages - t.prev_completed_messages)
            / extract(epoch FROM now() - t.prev_snapshot_at)::numeric, 0), 99999999) ELSE t.processed_per_second END,
    prev_total_messages = CASE WHEN t.prev_snapshot_at <= now() - interval '3 seconds'
        THEN excluded.prev_total_messages ELSE t.prev_total_messages END,
    prev_completed_messages = CASE WHEN t.prev_snapshot_at <= now() - interval '3 seconds'
        THEN excluded.prev_completed_messages ELSE t.prev_completed_messages END,
    prev_snapshot_at = CASE WHEN t.prev_snapshot_at <= now() - interval '3 seconds'
        THEN excluded.prev_snapshot_at ELSE t.prev_snapshot_at END,
    last_scanned_at = excluded.last_scanned_at,
    last_computed_at = excluded.last_computed_at
RETURNING t.stat_type, t.child_count
