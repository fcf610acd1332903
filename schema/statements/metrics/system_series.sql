-- What processes used, by process, bucket of time and value.
-- Caller: queen-storage metrics/series.rs. Locks: none. Writes: nothing.
-- $1 from timestamptz, $2 to timestamptz, $3 bucket seconds int8, $4 server text or NULL
SELECT m.hostname, m.port, m.worker_id, to_timestamp(floor(extract(epoch FROM m."timestamp") / $3::int8) * $3) AS bucket,
       g.key AS kind, v.key AS value, count(*) AS samples, avg(v.value::float8) AS avg, min(v.value::float8) AS min,
       max(v.value::float8) AS max, (array_agg(v.value::float8 ORDER BY m."timestamp" DESC))[1] AS last
FROM queen.system_metrics m
CROSS JOIN LATERAL jsonb_each(m.metrics) g
CROSS JOIN LATERAL jsonb_each_text(g.value) v
WHERE m."timestamp" >= $1::timestamptz AND m."timestamp" <= $2::timestamptz AND ($4::text IS NULL OR m.hostname = $4)
GROUP BY 1, 2, 3, 4, 5, 6
ORDER BY m.hostname COLLATE "C", m.port, m.worker_id, 4, 5, 6
