-- Names to ids, where they exist.
-- Caller: queen-storage ids.rs. Locks: none. Writes: nothing.
-- $1 tenant uuid[], $2 queue text[], $3 partition text[]
SELECT i.ord, q.id AS queue_id, p.id AS partition_id
FROM unnest($1::uuid[], $2::text[], $3::text[]) WITH ORDINALITY AS i (tenant, queue, partition, ord)
CROSS JOIN LATERAL (
    SELECT q.id FROM queen.queues q WHERE q.tenant_id = i.tenant AND q.name = i.queue OFFSET 0
) q
CROSS JOIN LATERAL (
    SELECT p.id FROM queen.log_partitions p WHERE p.queue_id = q.id AND p.name = i.partition OFFSET 0
) p
