-- Registers a group on a queue. Whoever inserts the row also seeds the cursors, in the same transaction; everybody
-- else waits here for that one row and then reads it.
-- A broker that knew the group as registered so lately that it may have told a pop since that there is nothing ($6) begins
-- where somebody deleted the group: that pop was the first contact of its new life.
-- Caller: queen-storage pop/register.rs. Locks: key share on queues, then the metadata row. Writes: metadata.
-- $1 tenant uuid, $2 group text, $3 queue uuid, $4 mode text, $5 timestamp timestamptz (NULL: now, or by $6)
-- $6 known as registered so many seconds ago float8 (NULL: it was not)
INSERT INTO queen.consumer_groups_metadata
    (tenant_id, consumer_group, queue_id, subscription_mode, subscription_timestamp)
VALUES ($1, $2, $3, $4, COALESCE($5::timestamptz, (
    SELECT r.repair_at FROM queen.hotlist_repairs r
    WHERE r.tenant_id = $1 AND r.queue_name = (SELECT q.name FROM queen.queues q WHERE q.id = $3) AND r.consumer_group = $2
      AND r.reason IN ('consumer-group-delete', 'consumer-group-delete-queue')
      AND r.repair_at >= clock_timestamp() - make_interval(secs => $6::float8)
), clock_timestamp()))
ON CONFLICT (tenant_id, consumer_group, COALESCE(queue_id, '00000000-0000-0000-0000-000000000000'::uuid),
             partition_name, namespace, task) DO NOTHING
-- created_at is when the transaction began
RETURNING subscription_mode, subscription_timestamp, subscription_timestamp < created_at
