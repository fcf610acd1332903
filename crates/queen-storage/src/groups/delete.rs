//! Forgetting a group.

use queen_pg::{PgTimestamp, Row, ToSql, step};
use queen_types::{Group, QueueName, TenantId, Uuid};

use crate::admin::row::column;
use crate::{Storage, StorageError, sql};

/// What the deletion of a group took away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Cursors.
    pub cursors: u64,
    /// Registrations.
    pub registrations: u64,
    /// The queues that the group was on, by name.
    pub queues: Vec<QueueName>,
}

impl Storage {
    /// Deletes the cursors of a group on one queue, or on all, live leases included, and with `registrations` also where
    /// it registered, so that its next pop is a first contact. One transaction, with a repair for every queue. Where
    /// the registration stays, the cursors are then made anew where the group had begun.
    ///
    /// # Errors
    /// See [`StorageError`].
    ///
    /// # Cancel safety
    /// A dropped call may have done it; deleting again is safe.
    pub async fn delete_group(
        &self,
        tenant: TenantId,
        group: &Group,
        queue: Option<&QueueName>,
        registrations: bool,
    ) -> Result<Deleted, StorageError> {
        let mut attempt = 1;
        loop {
            match self.delete_group_once(tenant, group, queue, registrations).await {
                Err(error) if error.is_retryable() && attempt < 3 => attempt += 1,
                result => return result,
            }
        }
    }

    async fn delete_group_once(
        &self,
        tenant: TenantId,
        group: &Group,
        queue: Option<&QueueName>,
        registrations: bool,
    ) -> Result<Deleted, StorageError> {
        let (text, only) = (group.as_str(), queue.map(QueueName::as_str));
        let reason = if queue.is_some() { "consumer-group-delete-queue" } else { "consumer-group-delete" };
        let whose: [&(dyn ToSql + Sync); 3] = [&tenant.0, &text, &only];
        let mut conn = self.inner.pool.get().await?;
        let mut tx = conn.begin();
        // Registrations first: whoever registers anew waits here, and finds no cursor when it goes on.
        let unregistered =
            if registrations { tx.query(sql::GROUPS_DELETE_METADATA, &whose).await? } else { Vec::new() };
        let found = tx.query(sql::GROUPS_CURSOR_IDS, &whose).await?;
        let ids: Vec<Uuid> = found.iter().map(|row| column(row, "id")).collect::<Result<_, _>>()?;
        let mut queues = named(&unregistered)?;
        queues.extend(named(&found)?);
        queues.sort_unstable();
        queues.dedup();
        let names: Vec<&str> = queues.iter().map(QueueName::as_str).collect();
        let cursors: [&(dyn ToSql + Sync); 2] = [&ids, &text];
        let partition: Option<&str> = None;
        let repair: [&(dyn ToSql + Sync); 5] = [&tenant.0, &names, &text, &partition, &reason];
        tx.commit_with(&[
            step(sql::GROUPS_LOCK_CURSORS, &cursors),
            step(sql::GROUPS_DELETE_CURSORS, &cursors),
            step(sql::GROUPS_REPAIR, &repair),
        ])
        .await?;
        if !registrations {
            // Partitions that were there when the group came must not pass for new ones.
            for row in conn.query(sql::GROUPS_KEPT, &whose).await? {
                let queue: Uuid = column(&row, "queue_id")?;
                let from: PgTimestamp = column(&row, "subscription_timestamp")?;
                conn.execute(sql::POP_SEED, &[&queue, &text, &from]).await?;
            }
        }
        if !queues.is_empty() {
            self.prune_repairs(&mut conn).await;
        }
        Ok(Deleted { cursors: ids.len() as u64, registrations: unregistered.len() as u64, queues })
    }
}

fn named(rows: &[Row]) -> Result<Vec<QueueName>, StorageError> {
    let mut names = Vec::new();
    for row in rows {
        if let Some(name) = column::<Option<&str>>(row, "queue")? {
            names.push(QueueName::new(name).map_err(|_| StorageError::Misaligned("queue"))?);
        }
    }
    Ok(names)
}
