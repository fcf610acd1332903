-- Deletes metrics, traces and history that were kept long enough, at most 5000 rows of each table.
-- Caller: queen-storage metrics/flush.rs. Locks: those rows. Writes: worker_metrics, queue_lag_metrics,
-- queue_parked_replica, system_metrics, retention_history, message_traces and by cascade
-- message_trace_names.
-- $1 days int4
WITH since AS MATERIALIZED (
    SELECT statement_timestamp() - make_interval(days => $1::int4) AS at
), worker AS (
    DELETE FROM queen.worker_metrics m
    USING (SELECT m.ctid AS address FROM queen.worker_metrics m
           WHERE m.bucket_time < (SELECT s.at FROM since s) ORDER BY m.bucket_time LIMIT 5000) o
    WHERE m.ctid = o.address
    RETURNING 1
), queue AS (
    DELETE FROM queen.queue_lag_metrics m
    USING (SELECT m.ctid AS address FROM queen.queue_lag_metrics m
           WHERE m.bucket_time < (SELECT s.at FROM since s) ORDER BY m.bucket_time LIMIT 5000) o
    WHERE m.ctid = o.address
    RETURNING 1
), parked AS (
    DELETE FROM queen.queue_parked_replica m
    USING (SELECT m.ctid AS address FROM queen.queue_parked_replica m
           WHERE m.bucket_time < (SELECT s.at FROM since s) ORDER BY m.bucket_time LIMIT 5000) o
    WHERE m.ctid = o.address
    RETURNING 1
), system AS (
    DELETE FROM queen.system_metrics m
    USING (SELECT m.ctid AS address FROM queen.system_metrics m
           WHERE m."timestamp" < (SELECT s.at FROM since s) ORDER BY m."timestamp" LIMIT 5000) o
    WHERE m.ctid = o.address
    RETURNING 1
), traces AS (
    DELETE FROM queen.message_traces m
    USING (SELECT m.ctid AS address FROM queen.message_traces m
           WHERE m.created_at < (SELECT s.at FROM since s) ORDER BY m.created_at LIMIT 5000) o
    WHERE m.ctid = o.address
    RETURNING 1
), history AS (
    DELETE FROM queen.retention_history m
    USING (SELECT m.ctid AS address FROM queen.retention_history m
           WHERE m.executed_at < (SELECT s.at FROM since s) ORDER BY m.executed_at LIMIT 5000) o
    WHERE m.ctid = o.address
    RETURNING 1
)
SELECT (SELECT count(*) FROM worker) + (SELECT count(*) FROM queue) + (SELECT count(*) FROM parked)
       + (SELECT count(*) FROM system) + (SELECT count(*) FROM traces) + (SELECT count(*) FROM history) AS rows
