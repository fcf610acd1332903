-- Deletes those of the locked partitions that nobody has use for: no segment, no dead letter, no live lease, and nothing
-- pushed, popped or made for so many days. The others are looked at again a day later.
-- Caller: queen-storage maintenance/cleanup.rs, after cleanup_lock.sql and cleanup_cursors.sql in the same transaction,
-- so that the snapshot is younger than the locks. Locks: none beyond those held. Writes: log_txns, log_partitions, log_consumers,
-- retention_history.
-- $1 partition uuid[] ascending, $2 days int4
WITH judged AS MATERIALIZED (
    SELECT p.id, p.address, p.queue_id,
           p.created_at < n.since AND p.last_write_at < n.since
           AND s.found IS NULL AND d.found IS NULL AND c.found IS NULL AS unused
    FROM unnest($1::uuid[]) AS i (id)
    CROSS JOIN (SELECT statement_timestamp() - make_interval(days => $2::int4) AS since) n
    CROSS JOIN LATERAL (
        SELECT p.id, p.ctid AS address, p.queue_id, p.created_at, p.last_write_at
        FROM queen.log_partitions p
        WHERE p.id = i.id
        OFFSET 0
    ) p
    LEFT JOIN LATERAL (
        SELECT TRUE AS found FROM queen.log_segments s WHERE s.partition_id = p.id LIMIT 1
    ) s ON TRUE
    LEFT JOIN LATERAL (
        SELECT TRUE AS found FROM queen.log_dlq d WHERE d.partition_id = p.id LIMIT 1
    ) d ON TRUE
    LEFT JOIN LATERAL (
        SELECT TRUE AS found FROM queen.log_consumers c
        WHERE c.partition_id = p.id AND GREATEST(c.created_at, c.active_at, c.lease_expires_at) >= n.since LIMIT 1
    ) c ON TRUE
), hashes AS (
    DELETE FROM queen.log_txns t
    USING judged j
    WHERE j.unused AND t.partition_id = j.id
), cursors AS (
    DELETE FROM queen.log_consumers c
    USING judged j
    WHERE j.unused AND c.partition_id = j.id
), noted AS (
    INSERT INTO queen.retention_history (partition_id, tenant_id, messages_deleted, retention_type)
    SELECT j.id, q.tenant_id, 0, '__partition_deleted__'
    FROM judged j
    CROSS JOIN LATERAL (SELECT q.tenant_id FROM queen.queues q WHERE q.id = j.queue_id OFFSET 0) q
    WHERE j.unused
), later AS (
    UPDATE queen.log_partitions p
    SET last_write_at = statement_timestamp() - make_interval(days => $2 - 1)
    FROM judged j
    WHERE p.ctid = j.address AND NOT j.unused
), removed AS (
    DELETE FROM queen.log_partitions p
    USING judged j
    WHERE p.ctid = j.address AND j.unused
)
SELECT j.id, q.tenant_id, q.name AS queue
FROM judged j
CROSS JOIN LATERAL (SELECT q.tenant_id, q.name FROM queen.queues q WHERE q.id = j.queue_id OFFSET 0) q
WHERE j.unused
