//! JSON requests and answers of the HTTP API, byte exact.
//!
//! This crate knows every JSON key and query parameter, and neither sockets nor rows. Requests are parsed into
//! values of `queen-types` (so what leaves a parser is valid), borrowing from the body: payloads are never copied
//! or re-serialised. Answers are written straight into a byte buffer.

mod ack;
mod analytics;
mod body;
mod configure;
mod dlq;
mod error;
mod groups;
mod internal;
mod json;
mod lease;
mod maintenance;
mod messages;
mod percent;
mod pop;
mod push;
mod query;
mod resources;
mod status;
mod status_query;
mod summary;
mod system;
mod traces;
mod transaction;

pub use ack::{Ack, AckLine, AckRequest, ack_answer};
pub use analytics::{
    ParkedLine, QueueBucketLine, RetentionLine, SystemLine, TimeRange, WorkerBucketLine, WorkerLine,
    parked_replicas, queue_lag, queue_ops, retention, system_metrics, worker_metrics,
};
pub use body::BodyError;
pub use configure::{ConfigureRequest, configured};
pub use dlq::{DlqLine, DlqQuery, dlq_page};
pub use error::{error_body, error_with_code, pop_refusal};
pub use groups::{
    CursorLine, GroupLine, SeekLine, SeekTarget, group_deleted, group_detail, group_list, lagging,
    min_lag_seconds, seek_partition, seek_queue, seek_refused, sought, subscription_changed,
    subscription_from,
};
pub use internal::{logged_out, no_mesh, notified, notify, operator};
pub use lease::{extend_seconds, lease_extended};
pub use maintenance::{
    BufferLine, FileLine, ModeRequest, QuarantineEvent, QuarantineLine, buffers, counted, drain_wait,
    drained, maintenance, maintenance_set, pop_maintenance, pop_maintenance_set, quarantine, requeue_indexes,
    spool,
};
pub use messages::{
    BrowseLine, MessageCore, MessageGroup, MessageLines, MessagesQuery, ModeLine, ReplayLine,
    dead_letters_deleted, message, messages, no_dead_letter, no_record, purge_query, purged, replay_failed,
    replayed,
};
pub use percent::{InvalidUtf8, decode_segment};
pub use pop::{MessageLine, PartitionLine, PopQuery, PopWriter};
pub use push::{PushItem, PushLine, PushRequest, push_answer};
pub use query::{Query, QueryError};
pub use resources::{
    CountsLine, DepthLine, DetailPartition, KeyKind, KeyLine, QueueLine, depth, keys, queue_deleted,
    queue_detail, queue_list,
};
pub use status::{
    AdmissionLine, DeadLettersLine, JobLine, LeasesLine, OverviewLine, PinLine, RefreshedLine, SpreadLine,
    StatusDocument, StatusPartitionLine, StoredQueueLine, admission, enabled_of, ingest, job_switched, jobs,
    overview, refreshed, status_document, status_queue, status_queues,
};
pub use status_query::StatusQuery;
pub use summary::{SummaryLine, config, summary};
pub use system::{Readiness, health, livez, metrics_zero, readyz, status};
pub use traces::{
    TraceLine, TraceNameLine, TraceRequest, trace_names, trace_page, traced, traces_by_name,
    traces_of_message,
};
pub use transaction::{
    TransactionRequest, TransactionRequestError, TxnLine, TxnOperation, transaction_committed,
    transaction_refused,
};
