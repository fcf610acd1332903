-- Adds what one broker counted of queues to their rows of the minute. Queues that are gone are passed over.
-- Caller: queen-storage metrics/flush.rs. Locks: queue_lag_metrics by queue id; key share on queues.
-- Writes: queue_lag_metrics.
-- $1 tenant uuid[], $2 queue text[], $3 pop messages int8[], $4 sum of their lags ms int8[], $5 largest lag ms int8[],
-- $6 push requests int8[], $7 push messages int8[], $8 empty pops int8[], $9 acks int8[], $10 acked int8[],
-- $11 not acked int8[], $12 transactions int8[], $13 partitions created int8[], $14 deleted int8[], $15 parked int8[]
INSERT INTO queen.queue_lag_metrics AS m (
    bucket_time, queue_id, pop_count, avg_lag_ms, max_lag_ms, lag_count, push_request_count, push_message_count,
    pop_empty_count, ack_request_count, ack_success_count, ack_failed_count, transaction_count, partitions_created,
    partitions_deleted, partition_count, parked_count
)
SELECT date_trunc('minute', statement_timestamp()), q.id, i.popped, i.lag / GREATEST(i.popped, 1), i.max_lag, i.popped,
       i.push_requests, i.pushed, i.empty, i.acks, i.acked, i.refused, i.transactions, i.created, i.deleted,
       COALESCE(s.child_count, 0), i.parked
FROM unnest($1::uuid[], $2::text[], $3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::int8[], $8::int8[], $9::int8[],
            $10::int8[], $11::int8[], $12::int8[], $13::int8[], $14::int8[], $15::int8[])
    AS i (tenant_id, name, popped, lag, max_lag, push_requests, pushed, empty, acks, acked, refused, transactions,
          created, deleted, parked)
CROSS JOIN LATERAL (
    SELECT q.id FROM queen.queues q WHERE q.tenant_id = i.tenant_id AND q.name = i.name FOR KEY SHARE SKIP LOCKED
) q
LEFT JOIN LATERAL (
    SELECT s.child_count FROM queen.stats s WHERE s.stat_type = 'queue' AND s.stat_key = q.id::text OFFSET 0
) s ON TRUE
ORDER BY q.id
ON CONFLICT (bucket_time, queue_id) DO UPDATE SET
    pop_count = m.pop_count + excluded.pop_count,
    avg_lag_ms = (m.avg_lag_ms * m.lag_count + excluded.avg_lag_ms * excluded.lag_count)
        / GREATEST(m.lag_count + excluded.lag_count, 1),
    lag_count = m.lag_count + excluded.lag_count,
    max_lag_ms = GREATEST(m.max_lag_ms, excluded.max_lag_ms),
    push_request_count = m.push_request_count + excluded.push_request_count,
    push_message_count = m.push_message_count + excluded.push_message_count,
    pop_empty_count = m.pop_empty_count + excluded.pop_empty_count,
    ack_request_count = m.ack_request_count + excluded.ack_request_count,
    ack_success_count = m.ack_success_count + excluded.ack_success_count,
    ack_failed_count = m.ack_failed_count + excluded.ack_failed_count,
    transaction_count = m.transaction_count + excluded.transaction_count,
    partitions_created = m.partitions_created + excluded.partitions_created,
    partitions_deleted = m.partitions_deleted + excluded.partitions_deleted,
    partition_count = GREATEST(m.partition_count, excluded.partition_count),
    parked_count = m.parked_count + excluded.parked_count
