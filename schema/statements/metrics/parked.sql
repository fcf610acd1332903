-- Notes how many pops are parked at one broker, by queue.
-- Caller: queen-storage metrics/flush.rs. Locks: queue_parked_replica, rows of its own. Writes: queue_parked_replica.
-- $1 server text, $2 tenant uuid[], $3 queue text[], $4 parked int8[]
INSERT INTO queen.queue_parked_replica AS r (bucket_time, queue_name, hostname, worker_id, tenant_id, parked_count)
SELECT date_trunc('minute', statement_timestamp()), i.name, $1::text, 0, i.tenant_id, i.parked::int4
FROM unnest($2::uuid[], $3::text[], $4::int8[]) AS i (tenant_id, name, parked)
ORDER BY i.name COLLATE "C", i.tenant_id
ON CONFLICT (bucket_time, queue_name, hostname, worker_id, tenant_id) DO UPDATE SET parked_count = excluded.parked_count
