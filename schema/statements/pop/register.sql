-- Registers a group on a queue. Whoever inserts the row also seeds the cursors, in the same transaction; everybody
-- else waits here for that one row and then reads it.
-- Caller: queen-storage pop/register.rs. Locks: key share on queues, then the metadata row. Writes: metadata.
-- $1 tenant uuid, $2 group text, $3 queue uuid, $4 mode text, $5 timestamp timestamptz (NULL: now)
INSERT INTO queen.consumer_groups_metadata
    (tenant_id, consumer_group, queue_id, subscription_mode, subscription_timestamp)
VALUES ($1, $2, $3, $4, COALESCE($5::timestamptz, clock_timestamp()))
ON CONFLICT (tenant_id, consumer_group, COALESCE(queue_id, '00000000-0000-0000-0000-000000000000'::uuid),
             partition_name, namespace, task) DO NOTHING
RETURNING subscription_mode, subscription_timestamp
