-- Appends segments of which the caller knows that no transaction id is stored, to partitions whose rows the transaction
-- holds locked: what insert.sql does in the common case, at a third of its cost, because nothing in it can search.
--
-- One row comes back per segment whose partition exists. Nothing is written of a partition, and its base offset is
-- null, if the log has grown beyond vouched, if a row at or below covered_from is still inside the window by this
-- clock, if the knowledge is of another server, or if the queue takes encrypted payloads alone; insert.sql then says
-- what is the case. All segments of a partition have to come with the same vouched and covered_from.
--
-- The clock is that of the statement's start, which comes after the lock was obtained.
--
-- Caller: queen-storage push, after push/lock.sql. Locks: none beyond those held. Writes: log_segments.
-- $1 partition uuid[] (equal ids adjacent, in append order), $2 messages of the same partition ahead int8[],
-- $3 frames int4[], $4 hashes bytea[], $5 blob bytea[], $6 vouched int8[], $7 covered_from int8[],
-- $8 the payloads are encrypted boolean, $9 server the rest is known from timestamptz
WITH placed AS MATERIALIZED (
    SELECT i.ord::int4 AS ord, i.partition_id, i.frames, e.log_end + 1 + i.ahead AS base_offset,
           GREATEST(statement_timestamp(), e.newest_at) AS stamp, e.dedup_window, e.opened,
           ($8::boolean OR NOT e.encrypted) AND (
               e.dedup_window = 0 OR e.log_end < 0
               OR i.vouched = e.log_end AND pg_postmaster_start_time() = $9::timestamptz AND (
                   i.covered_from < 0 OR COALESCE((
                       SELECT s.created_at FROM queen.log_segments s
                       WHERE s.partition_id = i.partition_id AND s.base_offset <= i.covered_from
                       ORDER BY s.base_offset DESC LIMIT 1
                   ), (
                       SELECT t.created_at FROM queen.log_txns t
                       WHERE t.partition_id = i.partition_id AND t.base_offset <= i.covered_from
                       ORDER BY t.base_offset DESC LIMIT 1
                   ), '-infinity') < statement_timestamp() - make_interval(secs => e.dedup_window)
               )
           ) AS clear
    FROM unnest($1::uuid[], $2::int8[], $3::int4[], $6::int8[], $7::int8[])
        WITH ORDINALITY AS i (partition_id, ahead, frames, vouched, covered_from, ord)
    --@ part log_end
), added AS (
    INSERT INTO queen.log_segments (partition_id, base_offset, end_offset, created_at, hashes, blob)
    SELECT p.partition_id, p.base_offset, p.base_offset + p.frames - 1, p.stamp,
           ($4::bytea[])[p.ord], ($5::bytea[])[p.ord]
    FROM placed p
    WHERE p.clear
)
SELECT p.ord - 1 AS segment, CASE WHEN p.clear THEN p.base_offset END AS base_offset, p.dedup_window, p.opened,
       pg_postmaster_start_time() AS server
FROM placed p
