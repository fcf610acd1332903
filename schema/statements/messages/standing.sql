-- Where every group stands on some partitions.
-- Caller: queen-storage messages/standing.rs. Locks: none. Writes: nothing.
-- $1 partition uuid[]
SELECT i.id AS partition_id, c.consumer_group, c.committed,
       CASE WHEN c.lease_expires_at > clock_timestamp() THEN c.batch_end END AS leased_to,
       CASE WHEN c.lease_expires_at > clock_timestamp() THEN c.lease_expires_at END AS leased_until
FROM unnest($1::uuid[]) AS i (id)
CROSS JOIN LATERAL (
    SELECT c.consumer_group, c.committed, c.batch_end, c.lease_expires_at
    FROM queen.log_consumers c WHERE c.partition_id = i.id
    OFFSET 0
) c
