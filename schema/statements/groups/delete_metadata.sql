-- Deletes the registrations of a group: its next pop is a first contact.
-- Caller: queen-storage groups/delete.rs. Locks: the metadata rows, ascending by id. Writes: metadata.
-- $1 tenant uuid, $2 group text, $3 queue name text (NULL: every queue)
WITH held AS MATERIALIZED (
    SELECT m.id, m.queue_id FROM queen.consumer_groups_metadata m
    WHERE m.tenant_id = $1::uuid AND m.consumer_group = $2::text
      AND ($3::text IS NULL
           OR m.queue_id = (SELECT q.id FROM queen.queues q WHERE q.tenant_id = $1::uuid AND q.name = $3))
    ORDER BY m.id
    FOR UPDATE
)
DELETE FROM queen.consumer_groups_metadata m USING held h WHERE m.id = h.id
RETURNING (SELECT q.name FROM queen.queues q WHERE q.id = h.queue_id) AS queue
