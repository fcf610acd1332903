-- Notes what one process uses.
-- Caller: queen-storage metrics/flush.rs. Locks: system_metrics, one row. Writes: system_metrics.
-- $1 server text, $2 port int4, $3 user CPU percent × 100 int8, $4 system CPU int8, $5 resident bytes int8, $6 virtual
-- bytes int8, $7 pool size int8, $8 idle int8, $9 active int8, $10 waiting int8
INSERT INTO queen.system_metrics ("timestamp", hostname, port, worker_id, sample_count, metrics)
VALUES (statement_timestamp(), $1::text, $2::int4, '0', 1, jsonb_build_object(
    'cpu', jsonb_build_object('user_us', $3::int8, 'system_us', $4::int8),
    'memory', jsonb_build_object('rss_bytes', $5::int8, 'virtual_bytes', $6::int8),
    'database', jsonb_build_object('pool_size', $7::int8, 'pool_idle', $8::int8, 'pool_active', $9::int8,
                                   'pool_waiting', $10::int8)
))
ON CONFLICT DO NOTHING
