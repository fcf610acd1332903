-- e: where the log of partition i.partition_id ends (docs/decisions/001) and with which stamp, and what a push has to know
-- of its queue: since when its deduplication window reaches back, and whether it takes encrypted payloads alone. No row
-- if the partition is gone.
CROSS JOIN LATERAL (
    SELECT GREATEST(p.last_offset, t.end_offset) AS log_end, t.created_at AS newest_at,
           q.dedup_window_seconds AS dedup_window,
           statement_timestamp() - make_interval(secs => q.dedup_window_seconds) AS start,
           q.encryption_enabled AS encrypted, p.oldest_live_at IS NULL AS opened
    FROM queen.log_partitions p
    CROSS JOIN LATERAL (
        SELECT q.dedup_window_seconds, q.encryption_enabled FROM queen.queues q WHERE q.id = p.queue_id OFFSET 0
    ) q
    LEFT JOIN LATERAL (
        SELECT s.end_offset, s.created_at
        FROM queen.log_segments s
        WHERE s.partition_id = i.partition_id
        ORDER BY s.base_offset DESC
        LIMIT 1
    ) t ON TRUE
    WHERE p.id = i.partition_id
    OFFSET 0
) e
