-- r: what the queue of partition p (id, queue_id, name, log_start) lets go at time $2. Its windows in seconds (age, done, evict;
-- NULL: that rule is off) and the moments that they end at (.._before), what its groups need (floor, leased), since when
-- hashes are kept, and the oldest segment (oldest_at, oldest_end; NULL without one). parts/retention_kind.sql applies it.
    CROSS JOIN LATERAL (
        SELECT q.tenant_id, q.age, q.done, q.evict, o.created_at AS oldest_at, o.end_offset AS oldest_end,
               c.floor, CASE WHEN q.protect_leased THEN c.leased ELSE 9223372036854775806 END AS leased,
               $2::timestamptz - make_interval(secs => q.age) AS age_before,
               $2::timestamptz - make_interval(secs => q.done) AS done_before,
               $2::timestamptz - make_interval(secs => q.evict) AS evict_before,
               statement_timestamp() - make_interval(secs => q.hash_seconds) AS hashes_since
        FROM (
            SELECT CASE WHEN q.retention_enabled AND q.retention_seconds > 0 THEN q.retention_seconds END AS age,
                   CASE WHEN q.retention_enabled AND q.completed_retention_seconds > 0
                        THEN q.completed_retention_seconds END AS done,
                   CASE WHEN q.max_wait_time_seconds > 0 THEN q.max_wait_time_seconds END AS evict,
                   q.id AS queue_id, q.tenant_id, q.protect_leased,
                   GREATEST(q.dedup_window_seconds, q.completed_retention_seconds, 900) AS hash_seconds,
                   CASE WHEN q.group_expiry_seconds > 0
                        THEN $2::timestamptz - make_interval(secs => q.group_expiry_seconds) END AS alive_since
            FROM queen.queues q
            WHERE q.id = p.queue_id
            OFFSET 0
        ) q
        LEFT JOIN LATERAL (
            SELECT s.end_offset, s.created_at
            FROM queen.log_segments s
            WHERE s.partition_id = p.id AND s.base_offset >= p.log_start
            ORDER BY s.base_offset
            LIMIT 1
        ) o ON TRUE
        -- The lowest position that a group still needs. Named groups decide, queue mode alone if there is none. A
        -- registered group without a cursor owes everything; one that has not been seen for groupExpirySeconds does not
        -- count.
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
    ) r
