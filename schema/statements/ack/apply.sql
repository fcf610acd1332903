-- Writes decided cursors. The rows exist and are held locked by ack/lock.sql; INSERT .. ON CONFLICT is an update that
-- can only go through the primary key (docs/decisions/002).
-- Caller: queen-storage ack/mod.rs and transaction.rs. Locks: none beyond those held. Writes: log_consumers.
-- $1 partition uuid[], $2 group text[], $3 committed int8[], $4 release boolean[], $5 retries used int4[],
-- $6 their offset int8[], $7 reset of the attempt columns boolean[], $8 positions retired int8[],
-- $9 delay until claimable ms int8[] (-1: none)
INSERT INTO queen.log_consumers AS c
    (partition_id, consumer_group, committed, batch_end, batch_retry_count, retry_offset, attempt_count,
     total_consumed, retry_at, worker_id, lease_expires_at)
SELECT i.partition_id, i.consumer_group, i.committed, CASE WHEN i.release THEN NULL ELSE i.committed END,
       i.retries, i.retry_offset, CASE WHEN i.reset THEN 0 ELSE 1 END, i.retired,
       CASE WHEN i.delay_ms >= 0 THEN clock_timestamp() + make_interval(secs => i.delay_ms / 1000.0) END,
       CASE WHEN i.release THEN NULL ELSE '' END, CASE WHEN i.release THEN NULL ELSE clock_timestamp() END
FROM unnest($1::uuid[], $2::text[], $3::int8[], $4::boolean[], $5::int4[], $6::int8[], $7::boolean[], $8::int8[],
            $9::int8[])
    AS i (partition_id, consumer_group, committed, release, retries, retry_offset, reset, retired, delay_ms)
ON CONFLICT (partition_id, consumer_group) DO UPDATE SET
    committed = excluded.committed,
    -- a released lease arrives as NULL; a kept one keeps what the row has
    batch_end = CASE WHEN excluded.batch_end IS NOT NULL THEN c.batch_end END,
    worker_id = CASE WHEN excluded.batch_end IS NOT NULL THEN c.worker_id END,
    lease_expires_at = CASE WHEN excluded.batch_end IS NOT NULL THEN c.lease_expires_at END,
    lease_acquired_at = CASE WHEN excluded.batch_end IS NOT NULL THEN c.lease_acquired_at END,
    lease_conflated = c.lease_conflated AND excluded.batch_end IS NOT NULL,
    batch_retry_count = excluded.batch_retry_count,
    retry_offset = excluded.retry_offset,
    attempt_offset = CASE WHEN excluded.attempt_count = 0 THEN NULL ELSE c.attempt_offset END,
    attempt_count = CASE WHEN excluded.attempt_count = 0 THEN 0 ELSE c.attempt_count END,
    total_consumed = c.total_consumed + excluded.total_consumed,
    -- only a claim ends a retry delay, and a claimed row has none
    retry_at = COALESCE(excluded.retry_at, c.retry_at)
