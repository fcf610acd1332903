-- A cursor that stands already goes to where it was sought, as if nothing had been delivered from there.
ON CONFLICT (partition_id, consumer_group) DO UPDATE SET
    committed = excluded.committed, batch_end = NULL, worker_id = NULL, lease_expires_at = NULL, lease_acquired_at = NULL,
    lease_conflated = FALSE, batch_retry_count = 0, retry_offset = NULL, retry_at = NULL, attempt_offset = NULL,
    attempt_count = 0
RETURNING c.partition_id, c.committed
