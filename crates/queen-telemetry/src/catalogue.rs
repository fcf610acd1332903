//! Every metric family of the product: name, kind, unit, labels, description.
//!
//! One table: the recorder describes and zeroes from it, `docs/metrics.md` is written from it. A family whose labels
//! have known values exists with zeros from the first scrape; one that is labelled by a queue, a route or a tenant is
//! declared then and gets its series when there is something to say.

/// What kind of family it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, from 0 at the start of the process (or over the life of the cluster, where the name says so).
    Counter,
    /// A current value.
    Gauge,
    /// Observations in buckets from 0.5 ms to 60 s.
    Histogram,
}

impl Kind {
    /// The word of the exposition format.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// One label of a family.
#[derive(Debug, Clone, Copy)]
pub struct Label {
    /// Its key.
    pub key: &'static str,
    /// Every value it takes; empty when they are not known in advance.
    pub values: &'static [&'static str],
}

/// One metric family.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// The name in the exposition.
    pub name: &'static str,
    /// What kind it is.
    pub kind: Kind,
    /// Unit of its values.
    pub unit: &'static str,
    /// Labels, in the order that series carry them.
    pub labels: &'static [Label],
    /// Value from the first scrape on, when nothing has been recorded.
    pub initial: f64,
    /// One line for HELP and for the documentation.
    pub description: &'static str,
}

impl Family {
    /// Every series that exists from the first scrape: the product of the label values, nothing when a label's values
    /// are not known in advance.
    pub fn fixed_series(&self) -> Vec<Vec<(&'static str, &'static str)>> {
        self.labels.iter().fold(vec![Vec::new()], |series, label| {
            series
                .iter()
                .flat_map(|head| {
                    label.values.iter().map(move |value| {
                        let mut labels = head.clone();
                        labels.push((label.key, *value));
                        labels
                    })
                })
                .collect()
        })
    }
}

macro_rules! initial {
    () => {
        0.0
    };
    ($value:literal) => {
        $value
    };
}

macro_rules! catalogue {
    ($($constant:ident $kind:ident $name:literal $unit:literal
        [$($key:ident $(= $($value:literal)|+)?),*] $(initial $initial:literal)? $description:literal;)*) => {
        /// Names of the families as constants.
        pub mod names {
            $(#[doc = $description] pub const $constant: &str = $name;)*
        }

        /// Every family, in the order of the documentation.
        pub const CATALOGUE: &[Family] = &[$(Family {
            name: $name,
            kind: Kind::$kind,
            unit: $unit,
            labels: &[$(Label { key: label_key(stringify!($key)), values: &[$($($value),+)?] }),*],
            initial: initial!($($initial)?),
            description: $description,
        }),*];
    };
}

/// `where` and `type` cannot be written as identifiers; a trailing underscore stands for them.
const fn label_key(ident: &'static str) -> &'static str {
    match ident.as_bytes() {
        b"where_" => "where",
        b"type_" => "type",
        _ => ident,
    }
}

catalogue! {
    UPTIME_SECONDS Gauge "queen_uptime_seconds" "seconds" [] "Time since this broker started.";
    BUILD_INFO Gauge "queen_build_info" "" [version, revision, rustc] "Always 1; its labels say which binary runs.";
    PROCESS_RESIDENT_MEMORY_BYTES Gauge "queen_process_resident_memory_bytes" "bytes" []
        "Resident memory of this process (Linux).";
    PROCESS_PUSH_REQUESTS_TOTAL Counter "queen_process_push_requests_total" "requests" [] "Push calls handled.";
    PROCESS_POP_REQUESTS_TOTAL Counter "queen_process_pop_requests_total" "requests" [] "Pop calls handled.";
    PROCESS_ACK_REQUESTS_TOTAL Counter "queen_process_ack_requests_total" "requests" [] "Ack calls handled.";
    PROCESS_PUSH_MESSAGES_TOTAL Counter "queen_process_push_messages_total" "messages" [] "Items pushed.";
    PROCESS_POP_MESSAGES_TOTAL Counter "queen_process_pop_messages_total" "messages" [] "Messages delivered.";
    PROCESS_ACK_MESSAGES_TOTAL Counter "queen_process_ack_messages_total" "messages" [] "Messages acknowledged.";
    READY Gauge "queen_ready" "0 or 1" [] "1 while a push sent to this broker would be accepted.";
    DEGRADED Gauge "queen_degraded" "0 or 1" [] "1 while this broker serves without its database.";
    CONFIG_WARNINGS Gauge "queen_config_warnings" "warnings" [] "Warnings that the configuration raised at boot.";

    POP_ANSWERS_LOST_TOTAL Counter "queen_pop_answers_lost_total" "answers" []
        "Answers to pops whose client was gone before they left; their leases were given back.";
    POP_TARGETED_TOTAL Counter "queen_pop_targeted_total" "pops" [] "Queue-level pops that a hint led to one partition.";
    POP_WILDCARD_TOTAL Counter "queen_pop_wildcard_total" "pops" [] "Queue-level pops that looked for a candidate.";
    POP_FILL_WAIT_TOTAL Counter "queen_pop_fill_wait_total" "pops" [] "Pops held to fatten their batch (minPopWaitTime).";
    POP_FILL_WAIT_MICROSECONDS_TOTAL Counter "queen_pop_fill_wait_microseconds_total" "microseconds" []
        "Time that pops were held to fatten their batch.";
    PARKED_LONG_POLLS Gauge "queen_parked_long_polls" "pops" [queue] "Long polls parked on this broker.";
    EVENT_LOOP_LAG_AVG_MILLISECONDS Gauge "queen_event_loop_lag_avg_milliseconds" "milliseconds" []
        "Mean overshoot of a 100 ms ticker since the start.";
    DEDUP_CACHE_BYTES Gauge "queen_dedup_cache_bytes" "bytes" []
        "Memory for the hashes of stored transaction ids; at most QUEEN_DEDUP_CACHE_MB.";
    DEDUP_SEGMENTS_TOTAL Counter "queen_dedup_segments_total" "segments" [search = "none" | "part" | "whole"]
        "Segments pushed, by how much of the deduplication window the database had to search for repeats.";
    BATCHES_FIRED_TOTAL Counter "queen_batches_fired_total" "batches" [op = "push" | "pop" | "ack"]
        "Commits that carried operations of this kind.";
    BATCH_ITEMS_FIRED_TOTAL Counter "queen_batch_items_fired_total" "items" [op = "push" | "pop" | "ack"]
        "Items carried by those commits.";
    FUSION_ITEMS_PER_BATCH Gauge "queen_fusion_items_per_batch" "items" [op = "push" | "pop" | "ack"]
        "Mean items per commit since the start.";
    BATCH_RTT_MILLISECONDS Gauge "queen_batch_rtt_milliseconds" "milliseconds"
        [op = "push" | "pop" | "ack", quantile = "0.5" | "0.99"] "Round trip of a commit, over the last 1024.";

    HTTP_REQUESTS_TOTAL Counter "queen_http_requests_total" "requests" [route, method, code]
        "Requests answered, by route template, method and status.";
    HTTP_REQUEST_DURATION_SECONDS Histogram "queen_http_request_duration_seconds" "seconds" [route, method]
        "Time to answer a request; the parked time of long polls is left out.";
    DB_TRANSACTION_DURATION_SECONDS Histogram "queen_db_transaction_duration_seconds" "seconds"
        [op = "push" | "pop" | "ack" | "txn" | "lease" | "configure" | "admin" | "maint"]
        "Duration of database transactions, by what they were for.";
    DELIVERY_AGE_SECONDS Histogram "queen_delivery_age_seconds" "seconds" [] "Time from append to delivery.";
    DB_ERRORS_TOTAL Counter "queen_db_errors_total" "errors"
        [op = "push" | "pop" | "ack" | "txn" | "lease" | "configure" | "admin" | "maint",
            class = "transient" | "permanent" | "config" | "timeout" | "pool"]
        "Failed database calls, by what they were for and what the failure means.";
    LEASES_EXPIRED_TOTAL Counter "queen_leases_expired_total" "leases" [] "Leases that ran out and were claimed anew.";
    REDELIVERIES_TOTAL Counter "queen_redeliveries_total" "messages" [] "Deliveries beyond the first of a batch's head.";
    SEGMENT_DECODE_ERRORS_TOTAL Counter "queen_segment_decode_errors_total" "segments" []
        "Stored segments that could not be decoded; they are set aside, not skipped.";
    MESSAGES_DROPPED_TOTAL Counter "queen_messages_dropped_total" "messages" []
        "Messages whose retries were used up on a queue without dead-lettering.";
    EVICTED_UNCONSUMED_TOTAL Counter "queen_evicted_unconsumed_total" "messages" []
        "Messages that retention deleted before every group had consumed them.";
    ACK_SKIPPED_MESSAGES_TOTAL Counter "queen_ack_skipped_messages_total" "messages" []
        "Unmentioned messages that a dead-lettering ack passed over.";
    ACK_UNKNOWN_STATUS_TOTAL Counter "queen_ack_unknown_status_total" "acks" []
        "Acks with a status word that nobody knows; they count as failed.";

    KV_OPS_TOTAL Counter "queen_kv_ops_total" "operations"
        [op = "get" | "getMany" | "getPrefix" | "put" | "delete" | "incr", result = "applied" | "rejected" | "error"]
        "Key-value operations.";
    KV_OP_DURATION_MILLISECONDS Gauge "queen_kv_op_duration_milliseconds" "milliseconds"
        [op = "get" | "getMany" | "getPrefix" | "put" | "delete" | "incr", quantile = "0.5" | "0.99"]
        "Duration of key-value operations.";
    KV_BYTES_TOTAL Counter "queen_kv_bytes_total" "bytes" [dir = "in" | "out"] "Value bytes written and read.";
    KV_EXPIRED_NOT_PRUNED Gauge "queen_kv_expired_not_pruned" "rows" [] "Expired rows that the sweeper has yet to delete.";
    KV_EXPIRED_NOT_PRUNED_CAPPED Gauge "queen_kv_expired_not_pruned_capped" "0 or 1" []
        "1 when the number of expired rows is a floor.";
    KV_EXPIRY_LAG_SECONDS Gauge "queen_kv_expiry_lag_seconds" "seconds" [] "Age of the oldest expired row.";
    KV_READ_REJECTED_TOTAL Counter "queen_kv_read_rejected_total" "reads"
        [reason = "rate_limited" | "quota" | "pool" | "disabled"] "Key-value reads refused.";
    KV_REJECTED_TOTAL Counter "queen_kv_rejected_total" "operations" [surface, reason]
        "Key-value operations refused, by surface.";
    KV_POOL Gauge "queen_kv_pool" "connections" [state = "size" | "available" | "waiting"]
        "The connection pool of the key-value routes.";
    KV_SINGLEFLIGHT_COALESCED_TOTAL Counter "queen_kv_singleflight_coalesced_total" "reads" []
        "Reads answered by another's round trip.";
    KV_ROWS Gauge "queen_kv_rows" "rows" [tenant] "Stored key-value rows.";
    KV_BYTES Gauge "queen_kv_bytes" "bytes" [tenant] "Stored key-value bytes.";
    KV_QUOTA_RATIO Gauge "queen_kv_quota_ratio" "ratio" [tenant] "Use of the key-value quota.";

    TIMERS_DUE Gauge "queen_timers_due" "timers" [] "Timers due and not fired.";
    TIMERS_DUE_CAPPED Gauge "queen_timers_due_capped" "0 or 1" [] "1 when the number of due timers is a floor.";
    TIMERS_OLDEST_LATE_SECONDS Gauge "queen_timers_oldest_late_seconds" "seconds" [] "How late the oldest due timer is.";
    TIMERS_FIRE_LAG_SECONDS Gauge "queen_timers_fire_lag_seconds" "seconds" [tenant, quantile]
        "Time from due to fired.";
    TIMERS_FIRE_LAG_TENANTS_DROPPED_TOTAL Counter "queen_timers_fire_lag_tenants_dropped_total" "samples" []
        "Samples of tenants beyond the cap of the lag gauges.";
    TIMERS_PENDING Gauge "queen_timers_pending" "timers" [tenant] "Timers scheduled.";
    TIMERS_FIRED_TOTAL Counter "queen_timers_fired_total" "segments" [result = "fired" | "duplicate" | "stale"]
        "Segments written by firing timers.";
    TIMERS_DLQ_TOTAL Counter "queen_timers_dlq_total" "timers" [] "Timers that were dead-lettered.";
    TIMERS_POISONED_TOTAL Counter "queen_timers_poisoned_total" "batches" [] "Fire batches that held a timer that cannot fire.";
    TIMERS_FIRE_FAILURES_TOTAL Counter "queen_timers_fire_failures_total" "transactions"
        [class = "transient" | "permanent" | "config"] "Failed fire transactions.";
    TIMERS_SCHEDULE_REJECTED_TOTAL Counter "queen_timers_schedule_rejected_total" "schedules"
        [reason = "shape" | "payload_too_large" | "quota" | "horizon" | "gated" | "rate_limited" | "unavailable"
            | "disabled"] "Schedules refused.";
    SWEEPER_CYCLE_MILLISECONDS Gauge "queen_sweeper_cycle_milliseconds" "milliseconds"
        [phase = "fire" | "kv_expire" | "usage", quantile = "0.5" | "0.99"] "Duration of a sweeper phase.";
    SWEEPER_ROWS_TOTAL Counter "queen_sweeper_rows_total" "rows" [phase = "fire" | "kv_expire" | "usage"]
        "Rows handled by a sweeper phase.";
    SWEEPER_PHASE_SKIPPED_TOTAL Counter "queen_sweeper_phase_skipped_total" "phases"
        [phase = "fire" | "kv_expire" | "usage"] "Sweeper phases left out.";
    SWEEPER_SKIP_LOCKED_TOTAL Counter "queen_sweeper_skip_locked_total" "rows" [] "Due rows that another broker held.";
    SWEEPER_SLEEP_MILLISECONDS Gauge "queen_sweeper_sleep_milliseconds" "milliseconds" [] "The sweeper's last sleep.";

    EPHEMERAL_MESSAGES_TOTAL Counter "queen_ephemeral_messages_total" "messages" [verb = "pushed" | "popped" | "acked"]
        "Messages of in-memory queues.";
    EPHEMERAL_DROPPED_TOTAL Counter "queen_ephemeral_dropped_total" "messages" [cause = "bounds" | "ttl" | "retry"]
        "Messages of in-memory queues that were dropped.";
    EPHEMERAL_FORWARDED_TOTAL Counter "queen_ephemeral_forwarded_total" "requests" [] "Requests passed on to the owning broker.";
    EPHEMERAL_WIPES_TOTAL Counter "queen_ephemeral_wipes_total" "rings" [] "In-memory rings lost with their owner.";
    EPHEMERAL_BYTES Gauge "queen_ephemeral_bytes" "bytes" [] "Bytes held in in-memory queues.";
    EPHEMERAL_QUEUES Gauge "queen_ephemeral_queues" "queues" [] "In-memory queues.";

    STREAMS_QUERIES Gauge "queen_streams_queries" "queries" [] "Registered stream queries.";
    STREAMS_STATE_ROWS Gauge "queen_streams_state_rows" "rows" [] "Rows of stream state.";
    STREAMS_CYCLES_TOTAL Counter "queen_streams_cycles_total" "cycles" [result] "Stream cycles.";
    STREAMS_CYCLE_MILLISECONDS Gauge "queen_streams_cycle_milliseconds" "milliseconds" [quantile = "0.5" | "0.99"]
        "Duration of a stream cycle.";
    STREAMS_STATE_OPS_TOTAL Counter "queen_streams_state_ops_total" "operations" [] "Operations on stream state.";
    STREAMS_SINK_MESSAGES_TOTAL Counter "queen_streams_sink_messages_total" "messages" [] "Messages pushed by stream cycles.";
    STREAMS_REGISTER_TOTAL Counter "queen_streams_register_total" "calls" [outcome] "Registrations of stream queries.";

    ADMISSION_BUDGET Gauge "queen_admission_budget" "transactions" [] "Write transactions that may be open at once.";
    ADMISSION_INFLIGHT Gauge "queen_admission_inflight" "transactions" [lane = "push" | "pop" | "ack" | "maint"]
        "Write transactions that are open.";
    ADMISSION_WAITING Gauge "queen_admission_waiting" "waiters" [lane = "push" | "pop" | "ack" | "maint"]
        "Who waits for a slot.";
    ADMISSION_TRAINS_PER_S Gauge "queen_admission_trains_per_s" "per second" [] "Commit trains.";
    ADMISSION_TXN_PER_TRAIN Gauge "queen_admission_txn_per_train" "transactions" [] "Transactions flushed together.";
    ADMISSION_CYCLE_MS Gauge "queen_admission_cycle_ms" "milliseconds" [] "Median cycle of a flush.";
    ADMISSION_CAP Gauge "queen_admission_cap" "transactions" [lane = "push" | "pop" | "ack" | "maint"] "Cap of a lane.";
    ADMISSION_OLDEST_SECONDS Gauge "queen_admission_oldest_seconds" "seconds" [] "Age of the oldest open write transaction outside maintenance.";
    ADMISSION_MODE Gauge "queen_admission_mode" "0 or 1" [] "0 normal, 1 commits look unsynchronised.";
    ADMISSION_WAIT_SECONDS Histogram "queen_admission_wait_seconds" "seconds" [lane = "push" | "pop" | "ack" | "maint"]
        "Wait for a slot.";

    DB_POOL_SIZE Gauge "queen_db_pool_size" "connections" [] "Configured size of the connection pool.";
    DB_POOL_IDLE Gauge "queen_db_pool_idle" "connections" [] "Open connections that nobody uses.";
    DB_POOL_ACTIVE Gauge "queen_db_pool_active" "connections" [] "Connections in use.";
    DB_POOL_WAITING Gauge "queen_db_pool_waiting" "waiters" [] "Who waits for a connection.";
    DB_POOL_WAIT_SECONDS Histogram "queen_db_pool_wait_seconds" "seconds" [] "Wait for a connection.";

    MAINTENANCE_MODE_ENABLED Gauge "queen_maintenance_mode_enabled" "0 or 1" [] "1 while every push goes to the spool.";
    MAINTENANCE_MODE Gauge "queen_maintenance_mode" "0 or 1" [kind = "push" | "pop"] "The maintenance modes.";
    FILE_BUFFER_PENDING Gauge "queen_file_buffer_pending" "events" [] "Spooled events that PostgreSQL has yet to see.";
    FILE_BUFFER_FAILED Gauge "queen_file_buffer_failed" "events" [] "Failed writes to the spool since the start.";
    FILE_BUFFER_DB_HEALTHY Gauge "queen_file_buffer_db_healthy" "0 or 1" [] initial 1.0
        "The spool's view of the database.";
    SPOOL_BYTES Gauge "queen_spool_bytes" "bytes" [] "Size of the spool.";
    SPOOL_FILES Gauge "queen_spool_files" "files" [state = "active" | "ready"] "Files of the spool.";
    SPOOL_OLDEST_EVENT_AGE_SECONDS Gauge "queen_spool_oldest_event_age_seconds" "seconds" [] "Age of the oldest spooled event.";
    SPOOL_DISK_FREE_BYTES Gauge "queen_spool_disk_free_bytes" "bytes" [] "Free space of the spool's file system.";
    SPOOL_BREAKER_OPEN Gauge "queen_spool_breaker_open" "0 or 1" [] "1 while the replay pauses after repeated failures.";
    SPOOL_WRITABLE Gauge "queen_spool_writable" "0 or 1" [] "1 while the spool takes events.";
    SPOOL_WRITTEN_EVENTS_TOTAL Counter "queen_spool_written_events_total" "events" [] "Events written to the spool.";
    SPOOL_WRITE_FAILURES_TOTAL Counter "queen_spool_write_failures_total" "writes" [] "Failed writes to the spool.";
    SPOOL_DRAINED_EVENTS_TOTAL Counter "queen_spool_drained_events_total" "events" [result = "queued" | "duplicate"]
        "Spooled events that were replayed.";
    SPOOL_QUARANTINED_FILES_TOTAL Counter "queen_spool_quarantined_files_total" "files" [] "Files set aside.";
    SPOOL_QUARANTINED_EVENTS_TOTAL Counter "queen_spool_quarantined_events_total" "events" [] "Accepted pushes set aside.";
    SPOOL_QUARANTINE_EVENTS Gauge "queen_spool_quarantine_events" "events" [] "Events in quarantine on disk.";
    SPOOL_QUARANTINE_BYTES Gauge "queen_spool_quarantine_bytes" "bytes" [] "Bytes in quarantine on disk.";

    CLUSTER_PUSH_REQUESTS_TOTAL Counter "queen_cluster_push_requests_total" "requests" [scope = "cluster"]
        "Push calls of all brokers, ever. Aggregate with max, not with sum.";
    CLUSTER_POP_REQUESTS_TOTAL Counter "queen_cluster_pop_requests_total" "requests" [scope = "cluster"]
        "Pop calls of all brokers, ever.";
    CLUSTER_ACK_REQUESTS_TOTAL Counter "queen_cluster_ack_requests_total" "requests" [scope = "cluster"]
        "Ack calls of all brokers, ever.";
    CLUSTER_PUSH_MESSAGES_TOTAL Counter "queen_cluster_push_messages_total" "messages" [scope = "cluster"]
        "Messages pushed to all brokers, ever.";
    CLUSTER_POP_MESSAGES_TOTAL Counter "queen_cluster_pop_messages_total" "messages" [scope = "cluster"]
        "Messages delivered by all brokers, ever.";
    CLUSTER_ACK_MESSAGES_TOTAL Counter "queen_cluster_ack_messages_total" "messages" [scope = "cluster"]
        "Messages acknowledged to all brokers, ever.";
    CLUSTER_TRANSACTIONS_TOTAL Counter "queen_cluster_transactions_total" "transactions" [scope = "cluster"]
        "Transactions of all brokers, ever.";
    CLUSTER_DB_ERRORS_TOTAL Counter "queen_cluster_db_errors_total" "errors" [scope = "cluster"]
        "Failed database calls of all brokers, ever.";
    CLUSTER_DLQ_TOTAL Counter "queen_cluster_dlq_total" "messages" [scope = "cluster"]
        "Messages dead-lettered by all brokers, ever.";
    CLUSTER_ACK_TOTAL Counter "queen_cluster_ack_total" "acks" [scope = "cluster", result = "success" | "failed"]
        "Acks of all brokers by result, ever.";
    METRICS_DATABASE_UP Gauge "queen_metrics_database_up" "0 or 1" []
        "1 when the database part of the last page could be read.";
    METRICS_DATABASE_AGE_SECONDS Gauge "queen_metrics_database_age_seconds" "seconds" []
        "Age of the database part of the page.";

    QUEUE_PUSH_REQUESTS_PER_MINUTE Gauge "queen_queue_push_requests_per_minute" "per minute" [queue] "Push calls, last bucket.";
    QUEUE_PUSH_MESSAGES_PER_MINUTE Gauge "queen_queue_push_messages_per_minute" "per minute" [queue] "Messages pushed, last bucket.";
    QUEUE_POP_MESSAGES_PER_MINUTE Gauge "queen_queue_pop_messages_per_minute" "per minute" [queue] "Messages delivered, last bucket.";
    QUEUE_POP_EMPTY_PER_MINUTE Gauge "queen_queue_pop_empty_per_minute" "per minute" [queue] "Empty pops, last bucket.";
    QUEUE_TRANSACTIONS_PER_MINUTE Gauge "queen_queue_transactions_per_minute" "per minute" [queue] "Transactions, last bucket.";
    QUEUE_CONFLATED_PER_MINUTE Gauge "queen_queue_conflated_per_minute" "per minute" [queue] "Messages passed by conflation, last bucket.";
    QUEUE_ACK_PER_MINUTE Gauge "queen_queue_ack_per_minute" "per minute" [queue, result] "Acks by result, last bucket.";
    QUEUE_POP_LAG_MILLISECONDS Gauge "queen_queue_pop_lag_milliseconds" "milliseconds" [queue, stat]
        "Age of messages at delivery (stat avg, max), last bucket.";
    QUEUE_PARKED_CONSUMERS Gauge "queen_queue_parked_consumers" "pops" [queue] "Parked long polls, mean of the last bucket.";
    QUEUE_METRICS_AGE_SECONDS Gauge "queen_queue_metrics_age_seconds" "seconds" [queue] "Age of that bucket.";
    DLQ_DEPTH Gauge "queen_dlq_depth" "rows" [scope = "cluster"] "Dead letters stored.";
    DLQ_DEPTH_BY_QUEUE Gauge "queen_dlq_depth_by_queue" "rows" [queue] "Dead letters stored, by queue.";
    QUEUE_DEPTH_MESSAGES Gauge "queen_queue_depth_messages" "messages" [queue] "Backlog of a queue.";
    CONSUMER_GROUP_LAG_MESSAGES Gauge "queen_consumer_group_lag_messages" "messages" [queue, group] "Backlog of a group.";
    CONSUMER_GROUP_LAG_SECONDS Gauge "queen_consumer_group_lag_seconds" "seconds" [queue, group]
        "Age of the oldest message that a group owes.";

    PANICS_TOTAL Counter "queen_panics_total" "panics" [where_ = "request" | "task"] "Panics that were caught.";
    TASK_RESTARTS_TOTAL Counter "queen_task_restarts_total" "restarts" [task] "Restarts of a background task.";
    TASK_UP Gauge "queen_task_up" "0 or 1" [task] "1 while a background task runs.";
    MESH_PEERS Gauge "queen_mesh_peers" "peers" [state] "Mesh peers by state.";
    MESH_FRAMES_TOTAL Counter "queen_mesh_frames_total" "frames" [direction, type_] "Mesh frames.";
    MESH_FRAMES_DROPPED_TOTAL Counter "queen_mesh_frames_dropped_total" "frames" [peer] "Mesh frames that were dropped.";
    MESH_HANDSHAKE_FAILURES_TOTAL Counter "queen_mesh_handshake_failures_total" "handshakes" [reason]
        "Mesh handshakes that failed.";
    JOB_LAST_SUCCESS_TIMESTAMP_SECONDS Gauge "queen_job_last_success_timestamp_seconds" "seconds since 1970" [job]
        "When a job last succeeded.";
    JOB_DURATION_SECONDS Histogram "queen_job_duration_seconds" "seconds" [job] "Duration of a job's cycle.";
    JOB_FAILURES_TOTAL Counter "queen_job_failures_total" "cycles" [job] "Failed cycles of a job.";
    JOB_LEADER Gauge "queen_job_leader" "0 or 1" [job] "1 on the broker that runs a job.";
    RETENTION_DELETED_MESSAGES_TOTAL Counter "queen_retention_deleted_messages_total" "messages"
        [rule = "age" | "completed" | "max_wait"] "Messages that retention deleted.";
    AUTH_FAILURES_TOTAL Counter "queen_auth_failures_total" "requests" [reason] "Requests refused for their token.";
    ENCRYPTION_ENABLED Gauge "queen_encryption_enabled" "0 or 1" [] "1 when a usable encryption key is configured.";
    ENCRYPTION_FAILURES_TOTAL Counter "queen_encryption_failures_total" "payloads" [op = "encrypt" | "decrypt"]
        "Payloads that could not be encrypted or decrypted.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_say_their_kind() {
        let names: BTreeSet<&str> = CATALOGUE.iter().map(|f| f.name).collect();
        assert_eq!(names.len(), CATALOGUE.len());
        for family in CATALOGUE {
            assert!(family.name.starts_with("queen_"), "{}", family.name);
            assert_eq!(family.kind == Kind::Counter, family.name.ends_with("_total"), "{}", family.name);
            assert!(family.kind != Kind::Histogram || family.name.ends_with("_seconds"), "{}", family.name);
            assert!(family.description.ends_with('.'), "{}", family.name);
        }
    }

    #[test]
    fn fixed_series_are_the_product_of_the_label_values() {
        let of = |name: &str| CATALOGUE.iter().find(|f| f.name == name).unwrap().fixed_series();
        assert_eq!(of(names::UPTIME_SECONDS), vec![Vec::new()]);
        assert_eq!(of(names::KV_OPS_TOTAL).len(), 18);
        assert_eq!(of(names::PANICS_TOTAL), vec![vec![("where", "request")], vec![("where", "task")]]);
        assert!(of(names::PARKED_LONG_POLLS).is_empty());
        assert!(of(names::QUEUE_ACK_PER_MINUTE).is_empty());
    }
}
