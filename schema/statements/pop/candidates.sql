-- Partitions of some queues that a group can probably claim, in random order. The filter is coarse: the claim decides
-- under the row lock. Also names cursors that lie beyond the log (lost commits after a failover), which the caller
-- repairs.
-- Caller: queen-storage pop/candidates.rs. Locks: none. Writes: nothing.
-- $1 queue uuid[], $2 group text, $3 limit int8, $4 windowBuffer release count int8
SELECT (q.ord - 1)::int4 AS queue, p.id AS partition_id, p.name, c.committed > e.log_end AS beyond
FROM unnest($1::uuid[]) WITH ORDINALITY AS q (id, ord)
CROSS JOIN LATERAL (
    SELECT k.delayed_processing AS delayed, k.window_buffer AS hold FROM queen.queues k WHERE k.id = q.id OFFSET 0
) o
CROSS JOIN LATERAL (
    SELECT p.id, p.name, p.last_offset FROM queen.log_partitions p WHERE p.queue_id = q.id OFFSET 0
) p
CROSS JOIN LATERAL (
    SELECT GREATEST(p.last_offset, t.end_offset) AS log_end, t.end_offset AS newest
    FROM (SELECT 1) AS one
    LEFT JOIN LATERAL (
        SELECT s.end_offset FROM queen.log_segments s
        WHERE s.partition_id = p.id ORDER BY s.base_offset DESC LIMIT 1
    ) t ON TRUE
) e
CROSS JOIN LATERAL (
    SELECT COALESCE(max(c.committed), -1) AS committed,
           COALESCE(bool_and((c.lease_expires_at IS NULL OR c.lease_expires_at <= clock_timestamp())
                             AND (c.retry_at IS NULL OR c.retry_at <= clock_timestamp())), TRUE) AS free
    FROM queen.log_consumers c
    WHERE c.partition_id = p.id AND c.consumer_group = $2
) c
WHERE (c.free AND e.newest > c.committed AND (
          (o.delayed <= 0 AND o.hold <= 0)
          OR CASE
              WHEN o.hold > 0 AND e.newest - c.committed >= $4 THEN TRUE
              ELSE (SELECT s.created_at FROM queen.log_segments s
                    WHERE s.partition_id = p.id AND s.base_offset <= c.committed + 1
                    ORDER BY s.base_offset DESC LIMIT 1)
                   <= clock_timestamp() - make_interval(secs => GREATEST(o.delayed, o.hold))
          END))
   OR c.committed > e.log_end
ORDER BY random()
LIMIT $3
