//! First contact of a group with a queue: registration, once, and the seeding of its cursors.

use std::time::Duration;

use queen_pg::{PgTimestamp, Row, step};
use queen_types::{Group, PartitionId, QueueId, QueueName, StartPoint, TenantId, Timestamp};

use crate::{Storage, StorageError, sql};

/// How long before its registration a partition may have been made and yet have been invisible to the statement that
/// seeded the group: longer than any transaction that makes one may run.
const BIRTH_MARGIN_MICROS: i64 = 60_000_000;
/// How often a registration starts over because the queue was deleted under it.
const ATTEMPTS: u32 = 3;

/// Where a group begins on a partition that has no cursor of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seed {
    /// Before the oldest retained message.
    Everything,
    /// After the newest message: only a pop of one partition by a group that is not registered.
    Newest,
    /// At the first segment of this instant or later; everything on a partition born since a little before it. What a
    /// group registered as `new` gets: partitions without its cursor were not there yet when it came.
    Since(Timestamp),
    /// At the first segment of this instant or later.
    At(Timestamp),
}

impl Seed {
    pub(crate) fn from(self) -> PgTimestamp {
        PgTimestamp(match self {
            Seed::Everything => Timestamp(i64::MIN),
            Seed::Newest => Timestamp(i64::MAX),
            Seed::Since(at) | Seed::At(at) => at,
        })
    }

    pub(crate) fn birth(self) -> PgTimestamp {
        PgTimestamp(match self {
            Seed::Since(at) => Timestamp(at.0.saturating_sub(BIRTH_MARGIN_MICROS)),
            Seed::Everything | Seed::Newest | Seed::At(_) => Timestamp(i64::MAX),
        })
    }
}

impl From<StartPoint> for Seed {
    /// The seed of a group that is not registered.
    fn from(start: StartPoint) -> Seed {
        match start {
            StartPoint::All => Seed::Everything,
            StartPoint::New => Seed::Newest,
            StartPoint::At(at) => Seed::At(at),
        }
    }
}

/// What is stored of a group on a queue.
#[derive(Debug, Clone, Copy)]
pub struct Registration {
    /// The queue's row, made by this call when there was none.
    pub queue: QueueId,
    /// Where the group begins on partitions without a cursor.
    pub seed: Seed,
    /// This call registered the group.
    pub first: bool,
}

impl Storage {
    /// Registers the group on the queue unless it is registered, in which case `start` does not matter. The queue row
    /// is made when missing.
    ///
    /// `seen`: how long ago the caller saw it registered, if pops may have relied on that since. If the group was deleted
    /// in this time, one that starts at `new` starts there, so that nothing is missed that came meanwhile.
    ///
    /// Concurrent first contacts, through any brokers, wait for the one that inserts the record and agree with it.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn register(
        &self,
        tenant: TenantId,
        queue: &QueueName,
        group: &Group,
        start: StartPoint,
        seen: Option<Duration>,
    ) -> Result<Registration, StorageError> {
        for _ in 0..ATTEMPTS {
            let found = crate::admin::load_queue(&self.inner.pool, tenant, queue).await?;
            let Some(row) = found else {
                self.subscribe_queue(tenant, queue).await?;
                continue;
            };
            match self.register_on(tenant, row.id, group, start, seen).await {
                // The queue was deleted in between.
                Err(error) if error.sqlstate() == Some("23503") => {}
                result => return result,
            }
        }
        Err(StorageError::Gone("the queue"))
    }

    /// Where a registered group begins on partitions without its cursor; `None` when it is not registered.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn stored_registration(
        &self,
        tenant: TenantId,
        queue: QueueId,
        group: &Group,
    ) -> Result<Option<Seed>, StorageError> {
        let mut conn = self.inner.pool.get().await?;
        let rows = conn.query(sql::POP_REGISTRATION, &[&tenant.0, &group.as_str(), &queue.0]).await?;
        rows.first().map(stored_seed).transpose()
    }

    /// Makes the cursor of a group that pops one partition without being registered and starts after its newest
    /// message, or at an instant: what is pushed from here on must not be taken for something from before. Without
    /// effect where there is a cursor, and for seeds that do not depend on the moment.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn seed_partition(
        &self,
        partition: PartitionId,
        group: &Group,
        seed: Seed,
    ) -> Result<(), StorageError> {
        let from = match seed {
            Seed::Everything | Seed::Since(_) => return Ok(()),
            Seed::Newest => None,
            Seed::At(at) => Some(PgTimestamp(at)),
        };
        let mut conn = self.inner.pool.get().await?;
        conn.execute(sql::POP_SEED_PARTITION, &[&partition.0, &group.as_str(), &from]).await?;
        Ok(())
    }

    async fn subscribe_queue(&self, tenant: TenantId, queue: &QueueName) -> Result<(), StorageError> {
        let (namespace, task) = queue.implied();
        let mut conn = self.inner.pool.get().await?;
        conn.execute(
            sql::POP_SUBSCRIBE_QUEUE,
            &[&tenant.0, &queue.as_str(), &namespace.as_str(), &task.as_str()],
        )
        .await?;
        Ok(())
    }

    async fn register_on(
        &self,
        tenant: TenantId,
        queue: QueueId,
        group: &Group,
        start: StartPoint,
        seen: Option<Duration>,
    ) -> Result<Registration, StorageError> {
        let mut conn = self.inner.pool.get().await?;
        let group = group.as_str();
        let known = conn.query(sql::POP_REGISTRATION, &[&tenant.0, &group, &queue.0]).await?;
        if let Some(row) = known.first() {
            return Ok(Registration { queue, seed: stored_seed(row)?, first: false });
        }
        let (mode, at) = match start {
            StartPoint::All => ("all", Some(Timestamp::EPOCH)),
            StartPoint::New => ("new", None),
            StartPoint::At(at) => ("timestamp", Some(at)),
        };
        let seen = seen.map(|ago| ago.as_secs_f64());
        let mut tx = conn.begin();
        let inserted = tx
            .query(sql::POP_REGISTER, &[&tenant.0, &group, &queue.0, &mode, &at.map(PgTimestamp), &seen])
            .await?;
        let Some(row) = inserted.first() else {
            let stored =
                tx.commit_with(&[step(sql::POP_REGISTRATION, &[&tenant.0, &group, &queue.0])]).await?;
            let row = stored.first().and_then(|rows| rows.first()).ok_or(StorageError::Gone("the group"))?;
            return Ok(Registration { queue, seed: stored_seed(row)?, first: false });
        };
        let seed = stored_seed(row)?;
        let since_deletion = row.get::<_, bool>(2).then(|| row.get::<_, PgTimestamp>(1));
        match start {
            // Cursors are made when they are first claimed; there is nothing to remember before.
            StartPoint::All => tx.commit().await?,
            StartPoint::New | StartPoint::At(_) => {
                let from = match start {
                    StartPoint::At(at) => Some(PgTimestamp(at)),
                    StartPoint::New | StartPoint::All => since_deletion,
                };
                tx.commit_with(&[step(sql::POP_SEED, &[&queue.0, &group, &from])]).await?;
            }
        }
        Ok(Registration { queue, seed, first: true })
    }
}

fn stored_seed(row: &Row) -> Result<Seed, StorageError> {
    let mode: &str = row.get(0);
    let at = row.get::<_, PgTimestamp>(1).0;
    match mode {
        "all" => Ok(Seed::Everything),
        "new" => Ok(Seed::Since(at)),
        "timestamp" => Ok(Seed::At(at)),
        _ => Err(StorageError::Misaligned("a stored subscription mode")),
    }
}
