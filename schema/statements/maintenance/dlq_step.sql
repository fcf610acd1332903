-- Deletes the oldest dead letters of one partition that failed before an instant, at most so many, and tells where the
-- next step begins, so that it does not look again at what this one deleted. One that somebody replays is left to them.
-- Caller: queen-storage maintenance/cleanup.rs. Locks: log_dlq, SKIP LOCKED. Writes: log_dlq.
-- $1 partition uuid, $2 before timestamptz, $3 rows int8, $4 from timestamptz
WITH old AS MATERIALIZED (
    SELECT d.ctid AS address, d.failed_at
    FROM queen.log_dlq d
    WHERE d.partition_id = $1::uuid AND d.failed_at < $2::timestamptz AND d.failed_at >= $4::timestamptz
    ORDER BY d.failed_at
    LIMIT $3::int8
    FOR UPDATE SKIP LOCKED
), removed AS (
    DELETE FROM queen.log_dlq d USING old o WHERE d.ctid = o.address RETURNING d.id
)
SELECT (SELECT count(*) FROM removed) AS rows, (SELECT max(o.failed_at) FROM old o) AS upto
