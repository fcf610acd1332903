-- Locks the partitions of a push, ascending, without writing a row version. The next statement of the transaction
-- takes its snapshot after this one, so it sees whatever was committed while we waited.
-- Caller: queen-storage push. Locks: log_partitions ascending by id. Writes: nothing.
-- $1 partition uuid[], ascending
SELECT p.id
FROM unnest($1::uuid[]) AS i (id)
CROSS JOIN LATERAL (
    SELECT p.id FROM queen.log_partitions p WHERE p.id = i.id FOR NO KEY UPDATE
) p
