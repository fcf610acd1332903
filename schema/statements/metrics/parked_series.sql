-- Parked pops of the queues of a tenant, by bucket of time, queue and broker.
-- Caller: queen-storage metrics/series.rs. Locks: none. Writes: nothing.
-- $1 tenant uuid, $2 from timestamptz, $3 to timestamptz, $4 bucket seconds int8, $5 queue text or NULL
SELECT to_timestamp(floor(extract(epoch FROM r.bucket_time) / $4::int8) * $4) AS bucket, r.queue_name, r.hostname,
       r.worker_id, max(r.parked_count)::int8 AS parked
FROM queen.queue_parked_replica r
WHERE r.bucket_time >= $2::timestamptz AND r.bucket_time <= $3::timestamptz AND r.tenant_id = $1::uuid
  AND ($5::text IS NULL OR r.queue_name = $5)
GROUP BY 1, 2, 3, 4
ORDER BY 1, r.queue_name COLLATE "C", r.hostname COLLATE "C", r.worker_id
