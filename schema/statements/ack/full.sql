-- Completes whole batches: each cursor moves to the end of its leased span and the lease goes. For what one delivered,
-- its lease holder says completed, so there is nothing to resolve and nothing to decide. What it writes is what
-- ack/apply.sql writes of such a batch.
--
-- A row is found by its address (docs/decisions/008), which the claim told: one page read, however many dead versions
-- of the row a long transaction keeps. An address is a hint: the row may have moved, and another may live there. So
-- everything else is checked, and the lease id, given once and to one claim, decides. IS NOT DISTINCT FROM instead of =,
-- so that no index and no hash can serve the conditions: the plan has no choice but the address. A request that
-- matches no row is not answered; the caller acks it item by item.
--
-- Caller: queen-storage ack/full.rs. Locks: log_consumers in input order (callers sort by partition, then by the group's
-- bytes). Writes: log_consumers.
-- $1 address tid[], $2 partition uuid[], $3 group text[], $4 lease text[], $5 end of the batch int8[]
UPDATE queen.log_consumers c SET
    committed = c.batch_end,
    batch_end = NULL,
    worker_id = NULL,
    lease_expires_at = NULL,
    lease_acquired_at = NULL,
    lease_conflated = FALSE,
    batch_retry_count = 0,
    retry_offset = NULL,
    attempt_offset = NULL,
    attempt_count = 0,
    total_consumed = c.total_consumed + c.batch_end - c.committed
FROM unnest($1::tid[], $2::uuid[], $3::text[], $4::text[], $5::int8[])
    WITH ORDINALITY AS i (address, partition_id, consumer_group, lease, batch_end, ord)
WHERE c.ctid = i.address
  AND c.partition_id IS NOT DISTINCT FROM i.partition_id
  AND c.consumer_group IS NOT DISTINCT FROM i.consumer_group
  AND c.worker_id IS NOT DISTINCT FROM i.lease
  AND c.batch_end IS NOT DISTINCT FROM i.batch_end
  AND c.lease_expires_at >= clock_timestamp()
RETURNING (i.ord - 1)::int4 AS request, c.ctid
