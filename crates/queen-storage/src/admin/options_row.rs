//! The options of a queue as a row of `queen.queues`, in both directions.

use queen_pg::{PgTimestamp, Row, ToSql};
use queen_types::{Namespace, QueueId, QueueOptions, RetryBackoff, Task, Timestamp, Uuid};

use super::row::column;
use crate::StorageError;

/// A queue: its identity and every option.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueRow {
    /// Row id.
    pub id: QueueId,
    /// Every option.
    pub options: QueueOptions,
    /// When the row was created.
    pub created_at: Timestamp,
}

impl QueueRow {
    /// Reads a row of `queue_load.sql` or `queue_lock.sql`.
    pub(super) fn decode(row: &Row) -> Result<QueueRow, StorageError> {
        let created_at: PgTimestamp = column(row, "created_at")?;
        Ok(QueueRow {
            id: QueueId(column::<Uuid>(row, "id")?),
            options: decode_options(row)?,
            created_at: created_at.0,
        })
    }
}

fn decode_options(row: &Row) -> Result<QueueOptions, StorageError> {
    // A queue row that something else inserted may have no namespace or task; that reads as the empty one.
    let namespace: Option<&str> = column(row, "namespace")?;
    let task: Option<&str> = column(row, "task")?;
    let backoff: &str = column(row, "retry_backoff")?;
    Ok(QueueOptions {
        namespace: Namespace::new(namespace.unwrap_or(""))
            .map_err(|_| StorageError::Misaligned("namespace"))?,
        task: Task::new(task.unwrap_or("")).map_err(|_| StorageError::Misaligned("task"))?,
        lease_time: column(row, "lease_time")?,
        retry_limit: column(row, "retry_limit")?,
        retry_delay: column(row, "retry_delay")?,
        priority: column(row, "priority")?,
        max_queue_size: column(row, "max_queue_size")?,
        ttl: column(row, "ttl")?,
        dead_letter_queue: column(row, "dead_letter_queue")?,
        dlq_after_max_retries: column(row, "dlq_after_max_retries")?,
        delayed_processing: column(row, "delayed_processing")?,
        window_buffer: column(row, "window_buffer")?,
        min_pop_wait_time: column(row, "min_pop_wait_time")?,
        dedup_window_seconds: column(row, "dedup_window_seconds")?,
        retention_enabled: column(row, "retention_enabled")?,
        retention_seconds: column(row, "retention_seconds")?,
        completed_retention_seconds: column(row, "completed_retention_seconds")?,
        max_wait_time_seconds: column(row, "max_wait_time_seconds")?,
        encryption_enabled: column(row, "encryption_enabled")?,
        retry_backoff: RetryBackoff::parse(backoff).ok_or(StorageError::Misaligned("retry_backoff"))?,
        retry_delay_max: column(row, "retry_delay_max")?,
        retry_jitter: column(row, "retry_jitter")?,
        max_delivery_attempts: column(row, "max_delivery_attempts")?,
        redeliver_skipped: column(row, "redeliver_skipped")?,
        group_expiry_seconds: column(row, "group_expiry_seconds")?,
        protect_leased: column(row, "protect_leased")?,
        dlq_retention_seconds: column(row, "dlq_retention_seconds")?,
    })
}

/// The text options, kept apart because parameters borrow them.
pub(super) struct OptionTexts<'a> {
    namespace: &'a str,
    task: &'a str,
    retry_backoff: &'static str,
}

impl<'a> OptionTexts<'a> {
    pub(super) fn of(options: &'a QueueOptions) -> Self {
        OptionTexts {
            namespace: options.namespace.as_str(),
            task: options.task.as_str(),
            retry_backoff: options.retry_backoff.as_str(),
        }
    }
}

/// Number of parameters that carry options, `$3` to `$29` of `queue_create.sql` and `queue_update.sql`.
const OPTIONS: usize = 27;

/// The parameters of `queue_create.sql` and `queue_update.sql`: `head` (two ids), then every option.
pub(super) fn option_params<'a>(
    head: [&'a (dyn ToSql + Sync); 2],
    options: &'a QueueOptions,
    texts: &'a OptionTexts<'a>,
) -> [&'a (dyn ToSql + Sync); OPTIONS + 2] {
    let [first, second] = head;
    [
        first,
        second,
        &texts.namespace,
        &texts.task,
        &options.priority,
        &options.lease_time,
        &options.retry_limit,
        &options.retry_delay,
        &options.ttl,
        &options.dead_letter_queue,
        &options.dlq_after_max_retries,
        &options.delayed_processing,
        &options.window_buffer,
        &options.retention_seconds,
        &options.completed_retention_seconds,
        &options.retention_enabled,
        &options.encryption_enabled,
        &options.max_wait_time_seconds,
        &options.max_queue_size,
        &options.min_pop_wait_time,
        &options.dedup_window_seconds,
        &texts.retry_backoff,
        &options.retry_delay_max,
        &options.retry_jitter,
        &options.max_delivery_attempts,
        &options.group_expiry_seconds,
        &options.dlq_retention_seconds,
        &options.redeliver_skipped,
        &options.protect_leased,
    ]
}
