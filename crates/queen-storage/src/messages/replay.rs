//! What an operator does with dead letters: replay, delete, purge.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use queen_pg::{PgTimestamp, Row, Tx, step};
use queen_types::{
    Group, MessageId, Offset, PartitionId, PartitionName, QueueName, TenantId, Timestamp, TransactionId, Uuid,
};

use crate::admin::row::{column, named};
use crate::push::{NewFrame, Via, Written};
use crate::transaction::{Appended, Lanes, NotAppended};
use crate::{PartitionKey, Storage, StorageError, TxnPush, sql};

/// Dead letters of one step of a purge, as purge.sql has it.
const PURGE_STEP: i64 = 5_000;

/// Which dead letter.
#[derive(Debug, Clone, Copy)]
pub enum Address<'a> {
    /// By its record id.
    Record(Uuid),
    /// The newest of a message, of any group.
    Message(PartitionId, &'a str),
}

/// A dead letter that was replayed, or would have been.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// Record id.
    pub record: Uuid,
    /// The group that had given it up.
    pub group: String,
    /// The key it had.
    pub original: String,
    /// Its queue.
    pub queue: QueueName,
    /// Name of its partition.
    pub partition: PartitionName,
    /// Its partition.
    pub partition_id: PartitionId,
    /// The key it has now: `dlq:` and the record id, so that nothing is replayed twice.
    pub transaction_id: TransactionId,
}

/// What became of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replayed {
    /// The message is at the end of its partition, the dead letter gone.
    Moved {
        /// What was replayed.
        replay: Replay,
        /// Id of the new message.
        message_id: MessageId,
        /// Its offset.
        offset: Offset,
        /// How long the commit took.
        commit: Duration,
    },
    /// A message with its key is stored already; nothing was written, the dead letter is still there.
    Duplicate {
        /// What would have been replayed.
        replay: Replay,
        /// Id of the stored message.
        message_id: MessageId,
    },
    /// There is no such dead letter, or somebody else was quicker.
    Missing,
    /// Its payload is not there: the message had been deleted, or could not be decoded, when it was given up.
    Empty(Replay),
}

impl Storage {
    /// Pushes a dead letter to the end of its partition and deletes it, in one transaction. Producer, trace id and
    /// payload are those of the message, byte for byte; its key is `dlq:` and the record id.
    ///
    /// # Errors
    /// See [`StorageError`]; nothing was done then, except when the outcome of the commit is unknown.
    ///
    /// # Cancel safety
    /// A dropped call may have committed; replaying again finds nothing then, or a duplicate.
    pub async fn replay(&self, tenant: TenantId, address: Address<'_>) -> Result<Replayed, StorageError> {
        let mut attempt = 1;
        loop {
            match self.replay_once(tenant, address).await {
                Err(error)
                    if attempt < 3 && (error.is_retryable() || matches!(error, StorageError::Gone(_))) =>
                {
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    async fn replay_once(&self, tenant: TenantId, address: Address<'_>) -> Result<Replayed, StorageError> {
        let (record, partition, key) = match address {
            Address::Record(id) => (Some(id), None, None),
            Address::Message(partition, key) => (None, Some(partition.0), Some(stored_key(key))),
        };
        let mut conn = self.inner.pool.get().await?;
        let mut tx = conn.begin();
        let rows = tx.query(sql::MESSAGES_REPLAY_LOCK, &[&tenant.0, &record, &partition, &key]).await?;
        let Some(row) = rows.first() else {
            tx.rollback().await?;
            return Ok(Replayed::Missing);
        };
        let replay = read(row)?;
        let payload: Option<&[u8]> = column(row, "payload_raw")?;
        let whole = column::<Option<Uuid>>(row, "message_id")?.is_some();
        let Some(payload) = payload.filter(|_| whole) else {
            tx.rollback().await?;
            return Ok(Replayed::Empty(replay));
        };
        let message_id = MessageId::mint();
        let pushes = [TxnPush {
            key: PartitionKey { tenant, queue: replay.queue.clone(), partition: replay.partition.clone() },
            frame: NewFrame {
                message_id,
                transaction_id: replay.transaction_id.clone(),
                payload: Bytes::copy_from_slice(payload),
                trace_id: column(row, "trace_id")?,
                producer_sub: column::<Option<&str>>(row, "producer_sub")?.map(Arc::from),
                encrypted: column(row, "encrypted")?,
            },
        }];
        self.move_to_log(tx, replay, &pushes, message_id).await
    }

    async fn move_to_log(
        &self,
        mut tx: Tx<'_>,
        replay: Replay,
        pushes: &[TxnPush],
        message_id: MessageId,
    ) -> Result<Replayed, StorageError> {
        let lanes = Lanes::of(pushes);
        let Appended { ids, outgoing, answers } = match self.append(&mut tx, pushes, &lanes).await {
            Ok(appended) => appended,
            Err(NotAppended::Repeats(repeats)) => {
                tx.rollback().await?;
                let at: Vec<_> = repeats.iter().map(|(_, at)| *at).collect();
                let ids = self.message_ids(&at).await.unwrap_or_default();
                let message_id = ids.first().copied().unwrap_or(MessageId::ZERO);
                return Ok(Replayed::Duplicate { replay, message_id });
            }
            Err(NotAppended::Failed(error)) => {
                tx.rollback().await?;
                // Perhaps the partition that is remembered under this name is one of a former life of the queue.
                lanes.keys.iter().for_each(|key| self.forget_partition(key));
                return Err(error);
            }
        };
        let began = Instant::now();
        let deleted = tx.commit_with(&[step(sql::MESSAGES_REPLAY_DELETE, &[&replay.record])]).await;
        let commit = began.elapsed();
        deleted.inspect_err(|_| self.inner.known.forget(ids.iter().copied()))?;
        let offset = answers.as_ref().and_then(|answers| match answers.written.first() {
            Some(Written::At(base, ..)) => Some(*base),
            _ => None,
        });
        if let Some(answers) = &answers {
            self.inner.known.learn(&outgoing, answers, Via::Search);
        }
        let offset = offset.ok_or(StorageError::Misaligned("replay"))?;
        Ok(Replayed::Moved { replay, message_id, offset, commit })
    }

    /// Deletes the dead letters of a message, of all groups; answers how many. The message itself stays where it is.
    ///
    /// # Errors
    /// See [`StorageError`].
    ///
    /// # Cancel safety
    /// A dropped call may have done it.
    pub async fn delete_dead_letters(
        &self,
        tenant: TenantId,
        partition: PartitionId,
        transaction_id: &str,
    ) -> Result<u64, StorageError> {
        let mut conn = self.inner.pool.get().await?;
        let key = stored_key(transaction_id);
        Ok(conn.execute(sql::MESSAGES_DELETE, &[&tenant.0, &partition.0, &key]).await?)
    }

    /// Deletes the dead letters of a queue, of one group or of all, in steps of 5000; answers how many. One that is
    /// being replayed at the moment stays.
    ///
    /// # Errors
    /// See [`StorageError`]; the steps before it are in effect.
    ///
    /// # Cancel safety
    /// As an error.
    pub async fn purge_dead_letters(
        &self,
        tenant: TenantId,
        queue: &QueueName,
        group: Option<&Group>,
    ) -> Result<u64, StorageError> {
        let mut conn = self.inner.pool.get().await?;
        let group = group.map(Group::as_str);
        let mut deleted = 0;
        let (mut partition, mut from) = (String::new(), PgTimestamp(Timestamp(i64::MAX)));
        loop {
            let rows = conn
                .query(sql::MESSAGES_PURGE, &[&tenant.0, &queue.as_str(), &group, &partition, &from])
                .await?;
            let Some(row) = rows.first() else { return Ok(deleted) };
            let step: i64 = column(row, "rows")?;
            deleted += u64::try_from(step).unwrap_or(0);
            if step < PURGE_STEP {
                return Ok(deleted);
            }
            (partition, from) = (column(row, "name")?, column(row, "failed_at")?);
        }
    }
}

fn read(row: &Row) -> Result<Replay, StorageError> {
    let record: Uuid = column(row, "id")?;
    let transaction_id = TransactionId::new(format!("dlq:{record}"));
    Ok(Replay {
        record,
        group: column(row, "consumer_group")?,
        original: column::<Option<String>>(row, "transaction_id")?.unwrap_or_default(),
        queue: named(row, "queue", QueueName::new)?,
        partition: named(row, "partition", PartitionName::new)?,
        partition_id: PartitionId(column(row, "partition_id")?),
        transaction_id: transaction_id.map_err(|_| StorageError::Misaligned("id"))?,
    })
}

/// A transaction id as the column of dead letters holds it.
pub(super) fn stored_key(transaction_id: &str) -> Cow<'_, str> {
    if transaction_id.contains('\0') {
        Cow::Owned(transaction_id.replace('\0', "\u{fffd}"))
    } else {
        Cow::Borrowed(transaction_id)
    }
}
