-- Live leases of the queues of a tenant, and what was acked in all. Walks the cursors of the tenant.
-- Caller: queen-storage metrics/series.rs. Locks: none. Writes: nothing.
-- $1 tenant uuid, $2 queue text or NULL
SELECT count(*) FILTER (WHERE c.live) AS active, count(DISTINCT c.partition_id) FILTER (WHERE c.live) AS partitions,
       COALESCE(sum(c.batch_end - c.committed) FILTER (WHERE c.live), 0)::int8 AS leased,
       COALESCE(sum(c.total_consumed), 0)::int8 AS acked
FROM queen.queues q
JOIN queen.log_partitions p ON p.queue_id = q.id
CROSS JOIN LATERAL (
    SELECT c.partition_id, c.batch_end, c.committed, c.total_consumed, COALESCE(c.lease_expires_at > now(), FALSE) AS live
    FROM queen.log_consumers c
    WHERE c.partition_id = p.id
    OFFSET 0
) c
WHERE q.tenant_id = $1::uuid AND ($2::text IS NULL OR q.name = $2)
