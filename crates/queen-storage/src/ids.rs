//! From names to ids: a cache in front of the two tables, and the creation of what a push finds missing.
//!
//! An id may be stale after a deletion. The statements treat a stale id as a missing partition, and the caller
//! [forgets](IdCache::forget) it and asks again; so the cache needs no coherence, only a bound.

use std::collections::HashMap;

use parking_lot::Mutex;
use queen_pg::{Conn, Row, Step, ToSql, Tx, step};
use queen_types::{PartitionId, PartitionName, QueueName, TenantId, Uuid};

use crate::{StorageError, sql};

/// How often the creation of partitions starts over because their queue was deleted under it.
const ATTEMPTS: u32 = 3;
/// Entries above which the cache is emptied: about 30 MB.
const ENTRIES_MAX: usize = 200_000;

/// Address of a partition by names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionKey {
    /// Owner.
    pub tenant: TenantId,
    /// Queue.
    pub queue: QueueName,
    /// Partition.
    pub partition: PartitionName,
}

/// Known ids.
#[derive(Debug, Default)]
pub(crate) struct IdCache {
    ids: Mutex<HashMap<PartitionKey, PartitionId>>,
}

impl IdCache {
    pub(crate) fn get(&self, key: &PartitionKey) -> Option<PartitionId> {
        self.ids.lock().get(key).copied()
    }

    pub(crate) fn put(&self, key: PartitionKey, id: PartitionId) {
        let mut ids = self.ids.lock();
        if ids.len() >= ENTRIES_MAX {
            ids.clear();
        }
        ids.insert(key, id);
    }

    pub(crate) fn forget(&self, key: &PartitionKey) {
        self.ids.lock().remove(key);
    }

    pub(crate) fn forget_queue(&self, tenant: TenantId, queue: &QueueName) {
        self.ids.lock().retain(|key, _| key.tenant != tenant || key.queue != *queue);
    }
}

/// Where statements run: a connection of their own, or inside a transaction that must not show its creations early.
pub(crate) enum On<'a, 'c> {
    Conn(&'a mut Conn),
    Tx(&'a mut Tx<'c>),
}

impl On<'_, '_> {
    async fn query(
        &mut self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StorageError> {
        Ok(match self {
            On::Conn(conn) => conn.query(sql, params).await?,
            On::Tx(tx) => tx.query(sql, params).await?,
        })
    }

    async fn together(&mut self, steps: &[Step<'_>]) -> Result<(), StorageError> {
        match self {
            On::Conn(conn) => conn.transact(steps).await?,
            On::Tx(tx) => tx.run(steps).await?,
        };
        Ok(())
    }
}

struct Columns<'a> {
    tenants: Vec<Uuid>,
    queues: Vec<&'a str>,
    partitions: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    fn of(keys: &[&'a PartitionKey]) -> Self {
        Columns {
            tenants: keys.iter().map(|k| k.tenant.0).collect(),
            queues: keys.iter().map(|k| k.queue.as_str()).collect(),
            partitions: keys.iter().map(|k| k.partition.as_str()).collect(),
        }
    }
}

/// Ids of the keys that exist, in their order.
pub(crate) async fn resolve(
    on: &mut On<'_, '_>,
    keys: &[&PartitionKey],
) -> Result<Vec<Option<PartitionId>>, StorageError> {
    let mut found = vec![None; keys.len()];
    if keys.is_empty() {
        return Ok(found);
    }
    let columns = Columns::of(keys);
    let rows = on.query(sql::PUSH_RESOLVE, &[&columns.tenants, &columns.queues, &columns.partitions]).await?;
    for row in rows {
        let ord: i64 = row.get(0);
        let slot = usize::try_from(ord - 1).ok().and_then(|i| found.get_mut(i));
        *slot.ok_or(StorageError::Misaligned("resolve"))? = Some(PartitionId(row.get(2)));
    }
    Ok(found)
}

/// A partition that exists.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) id: PartitionId,
    /// It did not exist when the call began.
    pub(crate) created: bool,
}

/// Ids of all keys; what is missing is created, queues first, both in the order of their unique keys.
///
/// # Errors
/// [`StorageError::Gone`] when a queue was deleted meanwhile; a transaction cannot go on then and has to start over.
pub(crate) async fn resolve_or_create(
    on: &mut On<'_, '_>,
    keys: &[&PartitionKey],
    created_by: &str,
) -> Result<Vec<Found>, StorageError> {
    let mut attempt = 1;
    loop {
        match resolve_or_create_once(on, keys, created_by).await {
            Err(StorageError::Gone(_)) if matches!(on, On::Conn(_)) && attempt < ATTEMPTS => attempt += 1,
            result => return result,
        }
    }
}

async fn resolve_or_create_once(
    on: &mut On<'_, '_>,
    keys: &[&PartitionKey],
    created_by: &str,
) -> Result<Vec<Found>, StorageError> {
    let mut found = resolve(on, keys).await?;
    let missing: Vec<usize> = (0..keys.len()).filter(|i| found[*i].is_none()).collect();
    if !missing.is_empty() {
        let wanted: Vec<&PartitionKey> = missing.iter().map(|i| keys[*i]).collect();
        create(on, &wanted, created_by).await?;
        for (i, id) in missing.iter().zip(resolve(on, &wanted).await?) {
            found[*i] = id;
        }
    }
    let found = found.into_iter().enumerate().map(|(i, id)| {
        let id = id.ok_or(StorageError::Gone("the queue"))?;
        Ok(Found { id, created: missing.binary_search(&i).is_ok() })
    });
    found.collect()
}

async fn create(on: &mut On<'_, '_>, keys: &[&PartitionKey], created_by: &str) -> Result<(), StorageError> {
    let mut queues: Vec<(TenantId, &QueueName)> = keys.iter().map(|k| (k.tenant, &k.queue)).collect();
    queues.sort_unstable();
    queues.dedup();
    let implied: Vec<_> = queues.iter().map(|(_, name)| name.implied()).collect();
    let tenants: Vec<Uuid> = queues.iter().map(|(tenant, _)| tenant.0).collect();
    let names: Vec<&str> = queues.iter().map(|(_, name)| name.as_str()).collect();
    let namespaces: Vec<&str> = implied.iter().map(|(namespace, _)| namespace.as_str()).collect();
    let tasks: Vec<&str> = implied.iter().map(|(_, task)| task.as_str()).collect();
    let mut keys: Vec<&PartitionKey> = keys.to_vec();
    keys.sort_unstable();
    let columns = Columns::of(&keys);
    let ids: Vec<Uuid> = keys.iter().map(|_| PartitionId::mint().0).collect();
    let created = on
        .together(&[
            step(sql::PUSH_PROVISION_QUEUES, &[&tenants, &names, &namespaces, &tasks, &created_by]),
            step(
                sql::PUSH_PROVISION_PARTITIONS,
                &[&columns.tenants, &columns.queues, &columns.partitions, &ids],
            ),
        ])
        .await;
    match created {
        // The queue was there, its deletion under way: the foreign key waited for it.
        Err(error) if error.sqlstate() == Some("23503") => Err(StorageError::Gone("the queue")),
        result => result,
    }
}
