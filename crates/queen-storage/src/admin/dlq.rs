//! The listing of dead letters.

use bytes::Bytes;
use queen_pg::{PgTimestamp, Pool, Row};
use queen_types::{
    Group, MessageId, Offset, PartitionId, PartitionName, QueueName, TenantId, Timestamp, Uuid,
};

use super::row::{column, named};
use super::sql;
use crate::StorageError;

/// Which dead letters a page holds.
#[derive(Debug, Clone, Default)]
pub struct DlqFilter {
    /// Only this queue.
    pub queue: Option<QueueName>,
    /// Only partitions of this name.
    pub partition: Option<PartitionName>,
    /// Only this group.
    pub group: Option<Group>,
    /// Failed at or after.
    pub from: Option<Timestamp>,
    /// Failed at or before.
    pub to: Option<Timestamp>,
    /// Page size; negative counts as 0.
    pub limit: i64,
    /// Records to skip; negative counts as 0.
    pub offset: i64,
}

/// One dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterRow {
    /// Record id.
    pub id: Uuid,
    /// The message's id, unless its segment was gone.
    pub message_id: Option<MessageId>,
    /// Its key, `None` when it could not be resolved.
    pub transaction_id: Option<String>,
    /// Its partition.
    pub partition_id: PartitionId,
    /// Name of the partition.
    pub partition: PartitionName,
    /// Its queue.
    pub queue: QueueName,
    /// Its offset.
    pub offset: Offset,
    /// The group that gave it up; not a [`Group`], since timers file theirs under a name of their own.
    pub group: String,
    /// Why.
    pub error: Option<String>,
    /// Retries used.
    pub retry_count: i32,
    /// The payload, byte for byte; `None` when its segment was gone.
    pub payload: Option<Bytes>,
    /// Whether the payload is an encryption envelope.
    pub encrypted: bool,
    /// Subject of the producer.
    pub producer_sub: Option<String>,
    /// Trace id of the message.
    pub trace_id: Option<Uuid>,
    /// When the message was stored.
    pub message_created_at: Option<Timestamp>,
    /// When it was given up.
    pub failed_at: Timestamp,
}

/// A page of dead letters.
#[derive(Debug, Clone, Default)]
pub struct DlqPage {
    /// The records, newest failure first.
    pub records: Vec<DeadLetterRow>,
    /// All that match the filter, on this page or not.
    pub total: i64,
}

/// One page of the tenant's dead letters. A filter that names what does not exist is an empty page.
///
/// # Errors
/// [`StorageError::Pg`] when the database was not reached; [`StorageError::Misaligned`] on a row that this product does not write.
pub async fn dlq_page(pool: &Pool, tenant: TenantId, filter: &DlqFilter) -> Result<DlqPage, StorageError> {
    let mut conn = pool.get().await?;
    let queue = filter.queue.as_ref().map(QueueName::as_str);
    let partition = filter.partition.as_ref().map(PartitionName::as_str);
    let group = filter.group.as_ref().map(Group::as_str);
    let from = filter.from.map(PgTimestamp);
    let to = filter.to.map(PgTimestamp);
    let limit = filter.limit.max(0);
    let offset = filter.offset.max(0);
    let rows = conn
        .query(sql::DLQ_PAGE, &[&tenant.0, &queue, &partition, &group, &from, &to, &limit, &offset])
        .await?;
    let total = match rows.first() {
        Some(row) => column(row, "total")?,
        None => 0,
    };
    let records = rows.iter().map(decode).collect::<Result<Vec<_>, _>>()?;
    Ok(DlqPage { records: records.into_iter().flatten().collect(), total })
}

/// `None` for the lone row of an empty page, and for a record that was replayed or deleted meanwhile.
fn decode(row: &Row) -> Result<Option<DeadLetterRow>, StorageError> {
    let Some(failed_at) = column::<Option<PgTimestamp>>(row, "failed_at")? else { return Ok(None) };
    let payload: Option<&[u8]> = column(row, "payload_raw")?;
    let message_created_at: Option<PgTimestamp> = column(row, "message_created_at")?;
    Ok(Some(DeadLetterRow {
        id: column(row, "id")?,
        message_id: column::<Option<Uuid>>(row, "message_id")?.map(MessageId),
        transaction_id: column(row, "transaction_id")?,
        partition_id: PartitionId(column(row, "partition_id")?),
        partition: named(row, "partition", PartitionName::new)?,
        queue: named(row, "queue", QueueName::new)?,
        offset: column(row, "offset")?,
        group: column(row, "consumer_group")?,
        error: column(row, "error")?,
        retry_count: column(row, "retry_count")?,
        payload: payload.map(Bytes::copy_from_slice),
        encrypted: column(row, "encrypted")?,
        producer_sub: column(row, "producer_sub")?,
        trace_id: column(row, "trace_id")?,
        message_created_at: message_created_at.map(|t| t.0),
        failed_at: failed_at.0,
    }))
}
