-- Seeds the cursors of a group that starts after the newest message, or at an instant, on every partition that exists.
-- A partition that this statement cannot see yet is one whose every message came after the registration.
-- Caller: queen-storage pop/register.rs, only who registered the group, and groups/delete.rs. Locks: log_partitions FOR KEY SHARE, then
-- log_consumers ascending by partition. Writes: log_consumers.
-- $1 queue uuid, $2 group text, $3 from timestamptz (NULL: after the newest message)
INSERT INTO queen.log_consumers (partition_id, consumer_group, committed)
SELECT p.id, $2,
       COALESCE(
           CASE WHEN $3::timestamptz IS NOT NULL THEN
               (SELECT GREATEST(s.base_offset, p.log_start) - 1 FROM queen.log_segments s
                WHERE s.partition_id = p.id AND s.created_at >= $3::timestamptz
                ORDER BY s.base_offset LIMIT 1)
           END,
           GREATEST(p.last_offset,
               (SELECT s.end_offset FROM queen.log_segments s
                WHERE s.partition_id = p.id ORDER BY s.base_offset DESC LIMIT 1)))
FROM (SELECT * FROM queen.log_partitions p WHERE p.queue_id = $1 ORDER BY p.id FOR KEY SHARE) p
ORDER BY p.id
ON CONFLICT (partition_id, consumer_group) DO NOTHING
