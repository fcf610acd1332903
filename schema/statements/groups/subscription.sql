-- Changes where a group begins on partitions that have no cursor of it, on every queue. No cursor moves.
-- Caller: queen-storage groups/mod.rs. Locks: the metadata rows, ascending by id. Writes: metadata.
-- $1 tenant uuid, $2 group text, $3 instant timestamptz
WITH held AS MATERIALIZED (
    SELECT m.id FROM queen.consumer_groups_metadata m
    WHERE m.tenant_id = $1::uuid AND m.consumer_group = $2::text
    ORDER BY m.id
    FOR UPDATE
)
UPDATE queen.consumer_groups_metadata m
SET subscription_timestamp = $3::timestamptz, subscription_mode = 'timestamp'
FROM held h
WHERE m.id = h.id
