-- The partitions $1: i (id, ord), p (id, log_start), and e, where their logs end (log_end).
FROM unnest($1::uuid[]) WITH ORDINALITY AS i (id, ord)
CROSS JOIN LATERAL (
    SELECT p.id, p.log_start, p.last_offset FROM queen.log_partitions p WHERE p.id = i.id OFFSET 0
) p
CROSS JOIN LATERAL (
    SELECT GREATEST(p.last_offset,
               (SELECT s.end_offset FROM queen.log_segments s
                WHERE s.partition_id = p.id ORDER BY s.base_offset DESC LIMIT 1)) AS log_end
    OFFSET 0
) e
