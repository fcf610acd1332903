//! One message by its address.

use std::collections::BTreeMap;

use bytes::Bytes;
use queen_pg::{Conn, PgTimestamp, Row};
use queen_segment::{SegmentReader, TxnHash};
use queen_types::{
    MessageId, MessageStatus, Offset, PartitionId, PartitionName, QueueName, TenantId, Timestamp, Uuid,
};

use super::standing::{GroupStanding, Mode, Standing};
use crate::admin::row::{column, named};
use crate::{Storage, StorageError, sql};

/// The newest dead letter of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadInfo {
    /// Why it was given up.
    pub error: Option<String>,
    /// Retries used.
    pub retry_count: i32,
}

/// A message, with what its queue and its consumers say of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageDetail {
    /// Its id; `None` when only a dead letter without it is left.
    pub id: Option<MessageId>,
    /// Its offset.
    pub offset: Offset,
    /// Its payload, byte for byte; `None` when retention deleted it.
    pub payload: Option<Bytes>,
    /// The payload is an encryption envelope.
    pub encrypted: bool,
    /// Trace id.
    pub trace_id: Option<Uuid>,
    /// Authenticated producer.
    pub producer_sub: Option<String>,
    /// When it was stored.
    pub created_at: Timestamp,
    /// Name of its partition.
    pub partition: PartitionName,
    /// Its queue.
    pub queue: QueueName,
    /// Namespace of the queue.
    pub namespace: String,
    /// Task of the queue.
    pub task: String,
    /// Its state.
    pub status: MessageStatus,
    /// Its newest dead letter.
    pub dead: Option<DeadInfo>,
    /// End of the live lease that covers it.
    pub leased_until: Option<Timestamp>,
    /// `leaseTime`, `retryLimit`, `retryDelay`, `ttl` and `priority` of the queue.
    pub options: [i32; 5],
    /// Who consumes the partition.
    pub mode: Mode,
    /// Every group of the partition, by name, and whether it is done with the message.
    pub groups: Vec<(GroupStanding, bool)>,
}

/// What is left of a message, wherever it was found.
struct Found {
    id: Option<MessageId>,
    offset: Offset,
    payload: Option<Bytes>,
    encrypted: bool,
    trace_id: Option<Uuid>,
    producer_sub: Option<String>,
    created_at: Timestamp,
}

impl Storage {
    /// The newest retained message of a partition with a transaction id; one that retention deleted is told from its
    /// dead letter. `None`: the tenant has no such partition, or neither is there.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn message(
        &self,
        tenant: TenantId,
        partition: PartitionId,
        transaction_id: &str,
    ) -> Result<Option<MessageDetail>, StorageError> {
        let mut conn = self.inner.pool.get().await?;
        let hash = TxnHash::of(transaction_id.as_bytes());
        let rows = conn.query(sql::MESSAGES_FIND, &[&tenant.0, &partition.0, &hash.0.as_slice()]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let record = record(&mut conn, partition, transaction_id).await?;
        let stored = stored(row)?;
        let (dead, snapshot) = match record {
            Some((dead, snapshot)) => (Some(dead), Some(snapshot)),
            None => (None, None),
        };
        let Some(found) = stored.or(snapshot) else { return Ok(None) };
        let ranges = BTreeMap::from([(partition, (found.offset, found.offset))]);
        let standing = Standing::read(&mut conn, &ranges).await?;
        let judged = standing.judge(partition, found.offset);
        let mut groups: Vec<(GroupStanding, bool)> = standing
            .of(partition)
            .iter()
            .map(|group| (group.clone(), group.committed >= found.offset))
            .collect();
        groups.sort_unstable_by(|a, b| a.0.group.cmp(&b.0.group));
        let mut options = [0; 5];
        for (slot, name) in
            options.iter_mut().zip(["lease_time", "retry_limit", "retry_delay", "ttl", "priority"])
        {
            *slot = column(row, name)?;
        }
        Ok(Some(MessageDetail {
            id: found.id,
            offset: found.offset,
            payload: found.payload,
            encrypted: found.encrypted,
            trace_id: found.trace_id,
            producer_sub: found.producer_sub,
            created_at: found.created_at,
            partition: named(row, "partition", PartitionName::new)?,
            queue: named(row, "queue", QueueName::new)?,
            namespace: column(row, "namespace")?,
            task: column(row, "task")?,
            status: judged.status,
            dead,
            leased_until: judged.leased_until,
            options,
            mode: standing.mode(std::iter::once(partition)),
            groups,
        }))
    }
}

/// The message in its segment.
fn stored(row: &Row) -> Result<Option<Found>, StorageError> {
    let Some(offset) = column::<Option<Offset>>(row, "at")? else { return Ok(None) };
    let base: Offset = column(row, "base_offset")?;
    let blob: &[u8] = column(row, "blob")?;
    let created_at = column::<PgTimestamp>(row, "created_at")?.0;
    let reader = SegmentReader::open(blob)
        .map_err(|_| StorageError::Misaligned("a segment that cannot be decoded"))?;
    let frame = usize::try_from(offset - base).ok().and_then(|index| reader.frame(index));
    Ok(frame.map(|frame| Found {
        id: Some(frame.message_id),
        offset,
        payload: Some(frame.payload.clone()),
        encrypted: frame.encrypted,
        trace_id: frame.trace_id,
        producer_sub: frame.producer_sub.map(str::to_owned),
        created_at,
    }))
}

/// The newest dead letter of an address.
async fn record(
    conn: &mut Conn,
    partition: PartitionId,
    transaction_id: &str,
) -> Result<Option<(DeadInfo, Found)>, StorageError> {
    let key = super::replay::stored_key(transaction_id);
    let rows = conn.query(sql::MESSAGES_RECORD, &[&partition.0, &key]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let failed_at: PgTimestamp = column(row, "failed_at")?;
    let created_at: Option<PgTimestamp> = column(row, "message_created_at")?;
    let payload: Option<&[u8]> = column(row, "payload_raw")?;
    let id: Option<Uuid> = column(row, "message_id")?;
    let dead = DeadInfo { error: column(row, "error")?, retry_count: column(row, "retry_count")? };
    let found = Found {
        id: id.map(MessageId),
        offset: column(row, "offset")?,
        // Without an id these are the bytes of a damaged segment.
        payload: id.and(payload).map(Bytes::copy_from_slice),
        encrypted: column(row, "encrypted")?,
        trace_id: column(row, "trace_id")?,
        producer_sub: column(row, "producer_sub")?,
        created_at: created_at.unwrap_or(failed_at).0,
    };
    Ok(Some((dead, found)))
}
