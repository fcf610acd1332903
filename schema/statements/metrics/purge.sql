-- Deletes metrics, traces and history that were kept long enough, at most 5000 rows of each table, each from the moment on
-- at which the last call stopped. How many went of each table, and where this call stopped.
-- Caller: queen-storage metrics/flush.rs. Locks: those rows. Writes: worker_metrics, queue_lag_metrics,
-- queue_parked_replica, system_metrics, retention_history, message_traces and by cascade
-- message_trace_names.
-- $1 days int4, $2 from timestamptz[], in the order of the answer
WITH since AS MATERIALIZED (
    SELECT statement_timestamp() - make_interval(days => $1::int4) AS at
), worker AS (
    DELETE FROM queen.worker_metrics m
    USING (SELECT m.ctid AS address FROM queen.worker_metrics m
           WHERE m.bucket_time < (SELECT s.at FROM since s) AND m.bucket_time >= ($2::timestamptz[])[1]
           ORDER BY m.bucket_time LIMIT 5000) o
    WHERE m.ctid = o.address
    RETURNING m.bucket_time AS at
), queue AS (
    DELETE FROM queen.queue_lag_metrics m
    USING (SELECT m.ctid AS address FROM queen.queue_lag_metrics m
           WHERE m.bucket_time < (SELECT s.at FROM since s) AND m.bucket_time >= ($2::timestamptz[])[2]
           ORDER BY m.bucket_time LIMIT 5000) o
    WHERE m.ctid = o.address
    RETURNING m.bucket_time AS at
), parked AS (
    DELETE FROM queen.queue_parked_replica m
    USING (SELECT m.ctid AS address FROM queen.queue_parked_replica m
           WHERE m.bucket_time < (SELECT s.at FROM since s) AND m.bucket_time >= ($2::timestamptz[])[3]
           ORDER BY m.bucket_time LIMIT 5000) o
    WHERE m.ctid = o.address
    RETURNING m.bucket_time AS at
), system AS (
    DELETE FROM queen.system_metrics m
    USING (SELECT m.ctid AS address FROM queen.system_metrics m
           WHERE m."timestamp" < (SELECT s.at FROM since s) AND m."timestamp" >= ($2::timestamptz[])[4]
           ORDER BY m."timestamp" LIMIT 5000) o
    WHERE m.ctid = o.address
    RETURNING m."timestamp" AS at
), traces AS (
    DELETE FROM queen.message_traces m
    USING (SELECT m.ctid AS address FROM queen.message_traces m
           WHERE m.created_at < (SELECT s.at FROM since s) AND m.created_at >= ($2::timestamptz[])[5]
           ORDER BY m.created_at LIMIT 5000) o
    WHERE m.ctid = o.address
    RETURNING m.created_at AS at
), history AS (
    DELETE FROM queen.retention_history m
    USING (SELECT m.ctid AS address FROM queen.retention_history m
           WHERE m.executed_at < (SELECT s.at FROM since s) AND m.executed_at >= ($2::timestamptz[])[6]
           ORDER BY m.executed_at LIMIT 5000) o
    WHERE m.ctid = o.address
    RETURNING m.executed_at AS at
)
SELECT ARRAY[
           (SELECT count(*) FROM worker),
           (SELECT count(*) FROM queue),
           (SELECT count(*) FROM parked),
           (SELECT count(*) FROM system),
           (SELECT count(*) FROM traces),
           (SELECT count(*) FROM history)
       ] AS rows,
       ARRAY[
           (SELECT max(d.at) FROM worker d),
           (SELECT max(d.at) FROM queue d),
           (SELECT max(d.at) FROM parked d),
           (SELECT max(d.at) FROM system d),
           (SELECT max(d.at) FROM traces d),
           (SELECT max(d.at) FROM history d)
       ] AS upto
