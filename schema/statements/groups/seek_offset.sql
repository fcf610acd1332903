-- Sets the cursors of a group on some partitions to an offset, as far as the log has it, and makes those that are missing.
-- Leases and retry delays go. A cursor holds the last offset that is done: -1 replays everything retained, the largest
-- number skips everything.
-- Caller: queen-storage groups/seek.rs, after the lock statements, whose snapshot is older than what was waited for.
-- Locks: none beyond those held. Writes: log_consumers.
-- $1 partition uuid[] ascending, $2 group text, $3 offset int8
INSERT INTO queen.log_consumers AS c (partition_id, consumer_group, committed)
SELECT p.id, $2, GREATEST(LEAST($3::int8, e.log_end), p.log_start - 1)
--@ part seek_from
ORDER BY i.ord
--@ part seek_reset
