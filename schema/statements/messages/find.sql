-- A partition of the tenant with its queue, and the newest of its messages that has a given transaction id.
-- Caller: queen-storage messages/detail.rs. Locks: none. Writes: nothing.
-- No row: the tenant has no such partition. A NULL offset: no retained message has the id.
-- $1 tenant uuid, $2 partition uuid, $3 hash of the transaction id bytea
SELECT q.name AS queue, COALESCE(q.namespace, '') AS namespace, COALESCE(q.task, '') AS task, q.lease_time,
       q.retry_limit, q.retry_delay, q.ttl, q.priority, p.name AS partition, f.at, f.base_offset, f.created_at, f.blob
FROM queen.log_partitions p
JOIN queen.queues q ON q.id = p.queue_id AND q.tenant_id = $1::uuid
LEFT JOIN LATERAL (
    SELECT h.base_offset + k AS at, h.base_offset, h.created_at, h.blob
    FROM (
        SELECT s.base_offset, (s.end_offset - s.base_offset)::int4 AS last, s.hashes || ''::bytea AS bytes, s.created_at,
               s.blob
        FROM queen.log_segments s
        WHERE s.partition_id = p.id
        ORDER BY s.base_offset DESC
    ) h
    CROSS JOIN LATERAL generate_series(0, h.last) AS k
    WHERE position($3::bytea IN h.bytes) > 0 AND substr(h.bytes, 1 + 16 * k, 16) = $3
    ORDER BY h.base_offset DESC, k DESC
    LIMIT 1
) f ON TRUE
WHERE p.id = $2::uuid
