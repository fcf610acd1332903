-- lag: how far group $2 (NULL: every group) of tenant $1 is behind on each partition, one row without a partition for a
-- registered group of a queue that has none. A registered group stands also on partitions that it has not claimed yet: its
-- cursor there is where a claim would make it. Ages come from two probes of the primary key a partition, and only where
-- something is pending.
WITH member AS MATERIALIZED (
    SELECT q.id AS queue_id, q.name AS queue, p.id AS partition_id, p.name AS partition, p.log_start, p.last_offset,
           c.consumer_group, c.committed, c.worker_id, c.leased, c.total_consumed
    FROM queen.queues q
    CROSS JOIN LATERAL (
        SELECT p.id, p.name, p.log_start, p.last_offset FROM queen.log_partitions p WHERE p.queue_id = q.id OFFSET 0
    ) p
    CROSS JOIN LATERAL (
        SELECT c.consumer_group, c.committed, c.worker_id, c.total_consumed,
               COALESCE(c.lease_expires_at > clock_timestamp(), FALSE) AS leased
        FROM queen.log_consumers c
        WHERE c.partition_id = p.id AND ($2::text IS NULL OR c.consumer_group = $2)
        OFFSET 0
    ) c
    WHERE q.tenant_id = $1::uuid
    UNION ALL
    SELECT q.id, q.name, p.id, p.name, p.log_start, p.last_offset, m.consumer_group, p.committed, NULL, FALSE, 0
    FROM queen.consumer_groups_metadata m
    JOIN queen.queues q ON q.id = m.queue_id
    LEFT JOIN LATERAL (
        SELECT p.id, p.name, p.log_start, p.last_offset,
               CASE WHEN m.subscription_mode = 'all'
                        OR (m.subscription_mode = 'new'
                            AND p.created_at >= m.subscription_timestamp - interval '60 seconds')
                    THEN p.log_start - 1
                    ELSE COALESCE(
                        (SELECT s.base_offset - 1 FROM queen.log_segments s
                         WHERE s.partition_id = p.id AND s.created_at >= m.subscription_timestamp
                         ORDER BY s.base_offset LIMIT 1),
                        GREATEST(p.last_offset,
                            (SELECT s.end_offset FROM queen.log_segments s
                             WHERE s.partition_id = p.id ORDER BY s.base_offset DESC LIMIT 1)))
               END AS committed
        FROM queen.log_partitions p
        WHERE p.queue_id = q.id
          AND (SELECT TRUE FROM queen.log_consumers c
               WHERE c.partition_id = p.id AND c.consumer_group = m.consumer_group) IS NULL
        OFFSET 0
    ) p ON TRUE
    WHERE m.tenant_id = $1::uuid AND m.partition_name = '' AND ($2::text IS NULL OR m.consumer_group = $2)
), lag AS (
    SELECT m.queue_id, m.queue, m.partition_id, m.partition, m.consumer_group, m.worker_id, m.leased, m.total_consumed,
           n.pending, oldest.created_at AS oldest_at,
           GREATEST(extract(epoch FROM clock_timestamp() - oldest.created_at), 0)::int8 AS age_seconds
    FROM member m
    LEFT JOIN LATERAL (
        SELECT s.end_offset FROM queen.log_segments s
        WHERE s.partition_id = m.partition_id ORDER BY s.base_offset DESC LIMIT 1
    ) newest ON TRUE
    CROSS JOIN LATERAL (
        SELECT GREATEST(GREATEST(m.last_offset, newest.end_offset) - GREATEST(m.committed, m.log_start - 1), 0) AS pending,
               GREATEST(m.committed + 1, m.log_start) AS head
        OFFSET 0
    ) n
    LEFT JOIN LATERAL (
        -- the segment that holds the head, or after a gap the one that follows
        SELECT COALESCE(
            (SELECT k.created_at FROM (
                 SELECT s.end_offset, s.created_at FROM queen.log_segments s
                 WHERE s.partition_id = m.partition_id AND s.base_offset <= n.head
                 ORDER BY s.base_offset DESC LIMIT 1
             ) k WHERE k.end_offset >= n.head),
            (SELECT s.created_at FROM queen.log_segments s
             WHERE s.partition_id = m.partition_id AND s.base_offset > n.head
             ORDER BY s.base_offset LIMIT 1)) AS created_at
        WHERE n.pending > 0
        OFFSET 0
    ) oldest ON TRUE
)
