-- Adds what one broker counted to its row of the minute.
-- Caller: queen-storage metrics/flush.rs. Locks: worker_metrics, one row. Writes: worker_metrics.
-- $1 server text, $2 pid int4, $3 event loop lag ms int4, $4 free slots int4, $5 connections int4, $6 waiting int4,
-- $7 counts int8[] in the order of the columns below
INSERT INTO queen.worker_metrics AS w (
    hostname, worker_id, pid, bucket_time, avg_event_loop_lag_ms, max_event_loop_lag_ms, avg_free_slots, min_free_slots,
    db_connections, avg_job_queue_size, max_job_queue_size, push_request_count, pop_request_count, ack_request_count,
    transaction_count, push_message_count, pop_message_count, ack_message_count, ack_success_count, ack_failed_count,
    lag_count, avg_lag_ms, max_lag_ms, db_error_count, dlq_count, jobs_done
)
SELECT $1::text, 0, $2::int4, date_trunc('minute', statement_timestamp()), $3::int4, $3, $4::int4, $4, $5::int4, $6::int4,
       $6, c.c[1], c.c[2], c.c[3], c.c[4], c.c[5], c.c[6], c.c[7], c.c[8], c.c[9], c.c[10],
       c.c[11] / GREATEST(c.c[10], 1), c.c[12], c.c[13], c.c[14], c.c[1] + c.c[2] + c.c[3] + c.c[4]
FROM (SELECT $7::int8[] AS c) c
ON CONFLICT (bucket_time, hostname, worker_id, pid) DO UPDATE SET
    max_event_loop_lag_ms = GREATEST(w.max_event_loop_lag_ms, excluded.max_event_loop_lag_ms),
    min_free_slots = LEAST(w.min_free_slots, excluded.min_free_slots),
    db_connections = excluded.db_connections,
    max_job_queue_size = GREATEST(w.max_job_queue_size, excluded.max_job_queue_size),
    push_request_count = w.push_request_count + excluded.push_request_count,
    pop_request_count = w.pop_request_count + excluded.pop_request_count,
    ack_request_count = w.ack_request_count + excluded.ack_request_count,
    transaction_count = w.transaction_count + excluded.transaction_count,
    push_message_count = w.push_message_count + excluded.push_message_count,
    pop_message_count = w.pop_message_count + excluded.pop_message_count,
    ack_message_count = w.ack_message_count + excluded.ack_message_count,
    ack_success_count = w.ack_success_count + excluded.ack_success_count,
    ack_failed_count = w.ack_failed_count + excluded.ack_failed_count,
    avg_lag_ms = (w.avg_lag_ms * w.lag_count + excluded.avg_lag_ms * excluded.lag_count)
        / GREATEST(w.lag_count + excluded.lag_count, 1),
    lag_count = w.lag_count + excluded.lag_count,
    max_lag_ms = GREATEST(w.max_lag_ms, excluded.max_lag_ms),
    db_error_count = w.db_error_count + excluded.db_error_count,
    dlq_count = w.dlq_count + excluded.dlq_count,
    jobs_done = w.jobs_done + excluded.jobs_done
