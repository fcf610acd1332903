-- Makes the cursor of an unregistered group on one partition, after the newest message or at an instant. A competitor
-- that makes the same cursor wins without anybody waiting: the try-lock is the one of pop/claim.sql.
-- Caller: queen-storage pop/register.rs, after a pop of one partition that found nothing. Locks: advisory (try), key
-- share on log_partitions (SKIP LOCKED: one that is being deleted needs no cursor), then log_consumers. Writes: log_consumers.
-- $1 partition uuid, $2 group text, $3 from timestamptz (NULL: after the newest message)
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
FROM (SELECT * FROM queen.log_partitions p WHERE p.id = $1 FOR KEY SHARE SKIP LOCKED) p
WHERE NOT EXISTS (SELECT 1 FROM queen.log_consumers c WHERE c.partition_id = p.id AND c.consumer_group = $2)
  AND pg_try_advisory_xact_lock(hashtextextended($2, uuid_hash_extended(p.id, 7781200)))
ON CONFLICT (partition_id, consumer_group) DO NOTHING
