-- Partitions of some (queue, group) pairs that probably have something to claim, up to 64 of each pair: the floor under
-- every wake of a parked pop, for all of them in one statement.
-- Caller: queen-storage pop/candidates.rs. Locks: none. Writes: nothing.
-- $1 queue uuid[], $2 group text[]
SELECT (i.ord - 1)::int4 AS pair, r.id AS partition_id, r.name, r.pending, r.address, r.missing
FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS i (queue_id, consumer_group, ord)
CROSS JOIN LATERAL (
    SELECT p.id, p.name, newest.end_offset - COALESCE(c.committed, -1) AS pending,
           COALESCE(c.address, p.ctid) AS address, c.address IS NULL AS missing
    FROM queen.log_partitions p
    CROSS JOIN LATERAL (
        SELECT s.end_offset FROM queen.log_segments s
        WHERE s.partition_id = p.id ORDER BY s.base_offset DESC LIMIT 1
    ) newest
    LEFT JOIN LATERAL (
        SELECT c.ctid AS address, c.committed,
               (c.lease_expires_at IS NULL OR c.lease_expires_at <= clock_timestamp())
               AND (c.retry_at IS NULL OR c.retry_at <= clock_timestamp()) AS free
        FROM queen.log_consumers c
        WHERE c.partition_id = p.id AND c.consumer_group = i.consumer_group
        OFFSET 0
    ) c ON TRUE
    WHERE p.queue_id = i.queue_id AND COALESCE(c.free, TRUE) AND newest.end_offset > COALESCE(c.committed, -1)
    LIMIT 64
) r
