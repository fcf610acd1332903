-- The cursors of one group, or of all, that are further behind than so many seconds.
-- Caller: queen-storage groups/list.rs. Locks: none. Writes: nothing.
-- $1 tenant uuid, $2 group text (NULL: every group), $3 seconds int8 (NULL: all, also those that are not behind)
--@ part group_lag
SELECT l.queue, l.consumer_group, l.partition_id, l.partition, l.worker_id, l.leased, l.total_consumed, l.pending,
       l.oldest_at, COALESCE(l.age_seconds, 0) AS age_seconds
FROM lag l
WHERE l.partition_id IS NOT NULL AND ($3::int8 IS NULL OR l.age_seconds > $3)
ORDER BY l.queue, l.partition COLLATE "C", l.consumer_group
