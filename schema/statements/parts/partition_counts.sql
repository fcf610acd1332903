-- n: the messages of partition p as parts/furthest_behind.sql sees it, in all since it was made (appended, consumed) and of
-- what is stored (total, backlog), and the offset that comes next; d: its dead letters. Zeroes without a partition.
CROSS JOIN LATERAL (
    -- Without any dead letters none is looked for. Every id is above this one: one look at the index tells.
    SELECT count(*) AS dead_letter FROM queen.log_dlq d
    WHERE (SELECT EXISTS (SELECT 1 FROM queen.log_dlq WHERE partition_id > '00000000-0000-0000-0000-000000000000'))
      AND d.partition_id = p.id
) d
CROSS JOIN LATERAL (
    SELECT COALESCE(e.log_end + 1, 0) AS appended,
           GREATEST(LEAST(c.worst, e.log_end), p.log_start - 1, -1) + 1 AS consumed,
           COALESCE(GREATEST(e.log_end - p.log_start + 1, 0), 0) AS total,
           COALESCE(GREATEST(e.log_end - GREATEST(c.worst, p.log_start - 1), 0), 0) AS backlog,
           GREATEST(c.worst + 1, p.log_start) AS next_offset
    FROM (SELECT GREATEST(p.last_offset, newest.end_offset) AS log_end) e
) n
