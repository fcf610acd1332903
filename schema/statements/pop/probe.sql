-- Where a group stands on one partition, for a claim that brought nothing: is the cursor beyond the log?
-- Caller: queen-storage pop/repair.rs. Locks: none. Writes: nothing.
-- $1 partition uuid, $2 group text
SELECT c.committed > GREATEST(p.last_offset,
           (SELECT s.end_offset FROM queen.log_segments s
            WHERE s.partition_id = p.id ORDER BY s.base_offset DESC LIMIT 1)) AS beyond
FROM queen.log_partitions p
JOIN queen.log_consumers c ON c.partition_id = p.id AND c.consumer_group = $2
WHERE p.id = $1
