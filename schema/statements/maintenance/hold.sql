-- Looks at partitions of the work list: those whose oldest segment may go come back as deletable. The others move back
-- on the list: until the next of their queue's windows ends, or, while a cursor or a lease holds the segment, for as
-- long as it has been held already, between one period and ten minutes. Partitions that somebody has locked stay as
-- they are and do not come back.
-- Caller: queen-storage maintenance/retention.rs. Locks: log_partitions ascending by id, SKIP LOCKED.
-- Writes: log_partitions.
-- $1 partition uuid[] ascending, $2 time of the cycle timestamptz, $3 period ms int8
WITH seen AS MATERIALIZED (
    SELECT p.id, p.address, o.created_at AS oldest, q.age, q.done, q.evict, LEAST(q.age, q.done, q.evict) AS shortest,
           COALESCE((
               o.created_at < $2::timestamptz - make_interval(secs => q.age)
               OR o.created_at < $2::timestamptz - make_interval(secs => q.evict)
               OR o.created_at < $2::timestamptz - make_interval(secs => q.done) AND o.end_offset <= c.floor
           ) AND (NOT q.protect_leased OR o.end_offset <= c.leased), FALSE) AS deletable
    FROM unnest($1::uuid[]) WITH ORDINALITY AS i (id, ord)
    CROSS JOIN LATERAL (
        SELECT p.id, p.ctid AS address, p.queue_id, p.name, p.log_start
        FROM queen.log_partitions p
        WHERE p.id = i.id
        FOR NO KEY UPDATE SKIP LOCKED
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
        SELECT s.end_offset, s.created_at
        FROM queen.log_segments s
        WHERE s.partition_id = p.id AND s.base_offset >= p.log_start
        ORDER BY s.base_offset
        LIMIT 1
    ) o ON TRUE
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
), deferred AS (
    UPDATE queen.log_partitions p
    SET oldest_live_at = s.oldest,
        retention_from = CASE WHEN s.oldest IS NOT NULL THEN GREATEST(s.oldest, LEAST(
            CASE WHEN s.oldest < $2::timestamptz - make_interval(secs => s.shortest)
                 THEN $2::timestamptz - make_interval(secs => s.shortest) + LEAST(
                     GREATEST($2::timestamptz - make_interval(secs => s.shortest) - s.oldest, make_interval(secs => $3::int8 / 1000.0)),
                     interval '10 minutes'
                 ) END,
            CASE WHEN s.oldest >= $2::timestamptz - make_interval(secs => s.age)
                 THEN s.oldest + make_interval(secs => s.age - s.shortest) END,
            CASE WHEN s.oldest >= $2::timestamptz - make_interval(secs => s.evict)
                 THEN s.oldest + make_interval(secs => s.evict - s.shortest) END
        )) END
    FROM seen s
    WHERE p.ctid = s.address AND NOT s.deletable
)
SELECT s.id, s.deletable, s.oldest IS NOT NULL AND NOT s.deletable
       AND s.oldest < $2::timestamptz - make_interval(secs => s.shortest) AS held
FROM seen s
