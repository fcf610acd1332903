-- Deletes the oldest dead letters of one partition that failed before an instant, at most so many. One that somebody
-- replays is left to them.
-- Caller: queen-storage maintenance/cleanup.rs. Locks: log_dlq, SKIP LOCKED. Writes: log_dlq.
-- $1 partition uuid, $2 before timestamptz, $3 rows int8
WITH old AS MATERIALIZED (
    SELECT d.ctid AS address
    FROM queen.log_dlq d
    WHERE d.partition_id = $1::uuid AND d.failed_at < $2::timestamptz
    ORDER BY d.failed_at
    LIMIT $3::int8
    FOR UPDATE SKIP LOCKED
), removed AS (
    DELETE FROM queen.log_dlq d USING old o WHERE d.ctid = o.address RETURNING d.id
)
SELECT count(*) AS rows FROM removed
