//! Seeking: the cursors of a group go somewhere else, and its leases with them.

use queen_pg::{Conn, PgTimestamp, Step, ToSql, step};
use queen_types::{Group, Offset, PartitionId, PartitionName, QueueName, TenantId, Timestamp, Uuid};

use crate::{PartitionKey, Storage, StorageError, sql};

/// Where cursors go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeekTo {
    /// Behind the newest message.
    End,
    /// Before the oldest retained message.
    Beginning,
    /// Right before the first segment that was created at this instant or later; the end when there is none. Up to one
    /// segment of earlier messages may come too.
    At(Timestamp),
    /// Everything up to this offset counts as done, as far as the log has it.
    Offset(Offset),
}

impl SeekTo {
    /// The statement, and the one parameter beside partitions and group.
    fn statement(self) -> (&'static str, Box<dyn ToSql + Sync + Send>) {
        match self {
            SeekTo::End => (sql::GROUPS_SEEK_OFFSET, Box::new(Offset::MAX)),
            SeekTo::Beginning => (sql::GROUPS_SEEK_OFFSET, Box::new(-1 as Offset)),
            SeekTo::Offset(at) => (sql::GROUPS_SEEK_OFFSET, Box::new(at)),
            SeekTo::At(at) => (sql::GROUPS_SEEK_TIME, Box::new(PgTimestamp(at))),
        }
    }
}

/// What a seek did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sought {
    /// Cursors that were set.
    pub partitions: u64,
}

impl Storage {
    /// Sets the cursor of a group on every partition of a queue; cursors that are missing are made. `None`: there is no
    /// such queue, or it has no partition.
    ///
    /// Runs in chunks of 1000 partitions, each a transaction with its own repair. A failure leaves the chunks before it
    /// in effect; seeking again is safe.
    ///
    /// # Errors
    /// See [`StorageError`].
    ///
    /// # Cancel safety
    /// As a failure: some chunks may be in effect.
    pub async fn seek_queue(
        &self,
        tenant: TenantId,
        queue: &QueueName,
        group: &Group,
        to: SeekTo,
    ) -> Result<Option<Sought>, StorageError> {
        let Some(row) = crate::admin::load_queue(&self.inner.pool, tenant, queue).await? else {
            return Ok(None);
        };
        let mut conn = self.inner.pool.get().await?;
        let mut done: Option<String> = None;
        let mut partitions = 0;
        loop {
            let from = done.as_deref().unwrap_or_default();
            let page = conn.query(sql::GROUPS_PAGE, &[&row.id.0, &from, &done]).await?;
            let Some(last) = page.last() else { break };
            done = Some(last.try_get(1).map_err(|_| StorageError::Misaligned("a page of partitions"))?);
            let mut ids: Vec<Uuid> = page.iter().map(|row| row.get(0)).collect();
            ids.sort_unstable();
            partitions += chunk(&mut conn, tenant, queue, group, to, &ids, None, "seek-queue").await?;
        }
        self.prune_repairs(&mut conn).await;
        Ok((partitions > 0).then_some(Sought { partitions }))
    }

    /// Sets the cursor of a group on one partition, made if it is missing. `None`: there is no such partition.
    ///
    /// # Errors
    /// See [`StorageError`].
    ///
    /// # Cancel safety
    /// A dropped call may have done it; seeking again is safe.
    pub async fn seek_partition(
        &self,
        tenant: TenantId,
        queue: &QueueName,
        partition: &PartitionName,
        group: &Group,
        to: SeekTo,
    ) -> Result<Option<PartitionId>, StorageError> {
        let key = PartitionKey { tenant, queue: queue.clone(), partition: partition.clone() };
        // What is remembered may be a partition of a former life of the queue.
        self.forget_partition(&key);
        let Some(id) = self.partition_id(&key).await? else { return Ok(None) };
        let mut conn = self.inner.pool.get().await?;
        let name = Some(partition.as_str());
        let set = chunk(&mut conn, tenant, queue, group, to, &[id.0], name, "seek-partition").await?;
        self.prune_repairs(&mut conn).await;
        Ok((set > 0).then_some(id))
    }
}

/// One transaction: locks in the order that all actors share, then the cursors, then the repair.
#[expect(clippy::too_many_arguments, reason = "the parts of one statement list, used twice")]
async fn chunk(
    conn: &mut Conn,
    tenant: TenantId,
    queue: &QueueName,
    group: &Group,
    to: SeekTo,
    ids: &[Uuid],
    partition: Option<&str>,
    reason: &str,
) -> Result<u64, StorageError> {
    let group = group.as_str();
    let queues = vec![queue.as_str()];
    let (statement, target) = to.statement();
    let target: &(dyn ToSql + Sync) = &*target;
    let named: [&(dyn ToSql + Sync); 2] = [&ids, &group];
    let only_ids: [&(dyn ToSql + Sync); 1] = [&ids];
    let seek: [&(dyn ToSql + Sync); 3] = [&ids, &group, target];
    let repair: [&(dyn ToSql + Sync); 5] = [&tenant.0, &queues, &group, &partition, &reason];
    let steps: [Step<'_>; 5] = [
        step(sql::GROUPS_LOCK_PARTITIONS, &only_ids),
        step(sql::GROUPS_LOCK_MISSING, &named),
        step(sql::GROUPS_LOCK_CURSORS, &named),
        step(statement, &seek),
        step(sql::GROUPS_REPAIR, &repair),
    ];
    let mut attempt = 1;
    let answers = loop {
        match conn.transact(&steps).await.map_err(StorageError::from) {
            Err(error) if error.is_retryable() && attempt < 3 => attempt += 1,
            result => break result?,
        }
    };
    let set = answers.get(3).ok_or(StorageError::Misaligned("seek"))?;
    Ok(set.len() as u64)
}
