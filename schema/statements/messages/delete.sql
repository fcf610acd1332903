-- Deletes the dead letters of an address, of all groups.
-- Caller: queen-storage messages/replay.rs. Locks: the log_dlq rows. Writes: log_dlq.
-- $1 tenant uuid, $2 partition uuid, $3 transaction id text
DELETE FROM queen.log_dlq d
WHERE d.partition_id = $2::uuid AND d.transaction_id = $3::text
  AND (SELECT q.tenant_id FROM queen.log_partitions p JOIN queen.queues q ON q.id = p.queue_id WHERE p.id = $2::uuid)
      = $1::uuid
