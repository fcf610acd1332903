-- Looks for transaction ids outside a leased span, as far back as the ack window reaches: the largest of the
-- deduplication window, the completed retention and 900 s. Tells the lowest offset above the cursor and whether the id
-- occurs at or below it.
-- Caller: queen-storage ack/mod.rs and transaction.rs, only for ids that no span holds. Locks: none beyond those held.
-- Writes: nothing.
-- $1 partition uuid[], $2 group text[], $3 hash bytea[]
SELECT (i.ord - 1)::int4 AS request,
       min(f.at) FILTER (WHERE f.at > c.committed) AS above,
       COALESCE(bool_or(f.at <= c.committed), FALSE) AS below
FROM unnest($1::uuid[], $2::text[], $3::bytea[]) WITH ORDINALITY AS i (partition_id, consumer_group, hash, ord)
CROSS JOIN LATERAL (
    SELECT c.committed FROM queen.log_consumers c
    WHERE c.partition_id = i.partition_id AND c.consumer_group = i.consumer_group OFFSET 0
) c
CROSS JOIN LATERAL (
    SELECT GREATEST(q.dedup_window_seconds, q.completed_retention_seconds, 900) AS seconds
    FROM queen.log_partitions p JOIN queen.queues q ON q.id = p.queue_id WHERE p.id = i.partition_id OFFSET 0
) w
CROSS JOIN LATERAL (
    SELECT h.base_offset + k AS at
    FROM (
        SELECT s.base_offset, (s.end_offset - s.base_offset)::int4 AS last, s.hashes || ''::bytea AS bytes
        FROM queen.log_segments s
        WHERE s.partition_id = i.partition_id
          AND s.created_at >= clock_timestamp() - make_interval(secs => w.seconds)
        UNION ALL
        SELECT t.base_offset, (t.end_offset - t.base_offset)::int4, t.hashes || ''::bytea
        FROM queen.log_txns t
        WHERE t.partition_id = i.partition_id
          AND t.created_at >= clock_timestamp() - make_interval(secs => w.seconds)
    ) h
    CROSS JOIN LATERAL generate_series(0, h.last) AS k
    WHERE position(i.hash IN h.bytes) > 0 AND substr(h.bytes, 1 + 16 * k, 16) = i.hash
) f
GROUP BY i.ord
