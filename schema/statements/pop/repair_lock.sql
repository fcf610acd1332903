-- Locks the cursors that seem to lie beyond the log. The clamp follows in a statement of its own, whose snapshot sees
-- every message that such a cursor may rightly have passed.
-- Caller: queen-storage pop/repair.rs. Locks: log_consumers in input order, SKIP LOCKED. Writes: nothing.
-- $1 partition uuid[] ascending, $2 group text
SELECT c.partition_id
FROM unnest($1::uuid[]) AS i (id)
CROSS JOIN LATERAL (
    SELECT c.partition_id FROM queen.log_consumers c
    WHERE c.partition_id = i.id AND c.consumer_group = $2 FOR UPDATE SKIP LOCKED
) c
