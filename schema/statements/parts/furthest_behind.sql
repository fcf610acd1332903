-- Where the log of partition p (id, log_start) ends: newest (base_offset, end_offset, created_at). And what its
-- furthest-behind view sees, c: what is done (worst) of the slowest named group, else of queue mode, else -1, and the
-- messages that are leased.
LEFT JOIN LATERAL (
    SELECT s.base_offset, s.end_offset, s.created_at
    FROM queen.log_segments s
    WHERE s.partition_id = p.id
    ORDER BY s.base_offset DESC
    LIMIT 1
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
