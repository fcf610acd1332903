-- Hashes of the leased spans: what the acks of lease holders resolve against.
-- Caller: queen-storage ack/mod.rs and transaction.rs, in the transaction that holds ack/lock.sql's rows. Locks: none
-- beyond those. Writes: nothing.
-- $1 partition uuid[], $2 group text[]
SELECT (i.ord - 1)::int4 AS request, h.base_offset, h.hashes
FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS i (partition_id, consumer_group, ord)
CROSS JOIN LATERAL (
    SELECT c.committed, c.batch_end FROM queen.log_consumers c
    WHERE c.partition_id = i.partition_id AND c.consumer_group = i.consumer_group AND c.batch_end IS NOT NULL OFFSET 0
) c
CROSS JOIN LATERAL (
    SELECT COALESCE((
        SELECT s.base_offset FROM queen.log_segments s
        WHERE s.partition_id = i.partition_id AND s.base_offset <= c.committed + 1
        ORDER BY s.base_offset DESC LIMIT 1), 0) AS base_offset
) start
CROSS JOIN LATERAL (
    SELECT s.base_offset, s.hashes FROM queen.log_segments s
    WHERE s.partition_id = i.partition_id AND s.base_offset >= start.base_offset AND s.base_offset <= c.batch_end
    UNION ALL
    SELECT t.base_offset, t.hashes FROM queen.log_txns t
    WHERE t.partition_id = i.partition_id AND t.base_offset <= c.batch_end AND t.end_offset > c.committed
) h
