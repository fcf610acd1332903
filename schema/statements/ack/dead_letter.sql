-- Files dead letters.
-- Caller: queen-storage dead_letter.rs, in the transaction of the ack that gave the messages up. Locks: none.
-- Writes: log_dlq.
-- $1 partition uuid[], $2 group text[], $3 offset int8[], $4 message uuid[], $5 transaction id text[],
-- $6 payload bytea[], $7 payload as JSON text text[] (NULL where JSONB cannot hold it), $8 encrypted boolean[],
-- $9 producer text[], $10 trace uuid[], $11 error text[], $12 retries int4[], $13 stored at timestamptz[]
INSERT INTO queen.log_dlq
    (partition_id, consumer_group, "offset", message_id, transaction_id, payload_raw, payload, encrypted,
     producer_sub, trace_id, error, retry_count, message_created_at, failed_at)
SELECT i.partition_id, i.consumer_group, i.at, i.message_id, i.transaction_id, i.payload, i.json::jsonb, i.encrypted,
       i.producer, i.trace_id, i.error, i.retries, i.stored_at, clock_timestamp()
FROM unnest($1::uuid[], $2::text[], $3::int8[], $4::uuid[], $5::text[], $6::bytea[], $7::text[], $8::boolean[],
            $9::text[], $10::uuid[], $11::text[], $12::int4[], $13::timestamptz[])
    AS i (partition_id, consumer_group, at, message_id, transaction_id, payload, json, encrypted, producer, trace_id,
          error, retries, stored_at)
