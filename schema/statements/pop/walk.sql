-- One page of a walk over the partitions of a queue: those where a group has something pending that no live lease or
-- retry delay holds back, visible or not, by name. What no mark announced is found here: at the first pop of a group, and
-- what other brokers did. Also names cursors that lie beyond the log (lost commits after a failover), which the caller
-- repairs. And says where the cursor lies, or for want of one the partition's row.
-- Caller: queen-storage pop/candidates.rs. Locks: none. Writes: nothing.
-- $1 queue uuid, $2 group text, $3 from name text (the empty one comes first), $4 rows int8,
-- $5 name that is done text (NULL: none)
SELECT p.id AS partition_id, p.name, COALESCE(c.committed > GREATEST(p.last_offset, t.end_offset), FALSE) AS beyond,
       t.end_offset - COALESCE(c.committed, p.log_start - 1) AS pending,
       COALESCE(c.address, p.address) AS address, c.address IS NULL AS missing
FROM (
    SELECT p.id, p.name, p.last_offset, p.log_start, p.ctid AS address FROM queen.log_partitions p
    WHERE p.queue_id = $1 AND p.name >= $3 AND p.name IS DISTINCT FROM $5::text
    ORDER BY p.name
    OFFSET 0
) p
LEFT JOIN LATERAL (
    SELECT s.end_offset FROM queen.log_segments s
    WHERE s.partition_id = p.id ORDER BY s.base_offset DESC LIMIT 1
) t ON TRUE
LEFT JOIN LATERAL (
    SELECT c.ctid AS address, c.committed,
           (c.lease_expires_at IS NULL OR c.lease_expires_at <= clock_timestamp())
           AND (c.retry_at IS NULL OR c.retry_at <= clock_timestamp()) AS free
    FROM queen.log_consumers c
    WHERE c.partition_id = p.id AND c.consumer_group = $2
    OFFSET 0
) c ON TRUE
WHERE (COALESCE(c.free, TRUE) AND t.end_offset > COALESCE(c.committed, -1))
   OR c.committed > GREATEST(p.last_offset, t.end_offset)
LIMIT $4
