//! What keeps a queue from deleting consumed messages.

use queen_pg::{PgTimestamp, Pool};
use queen_types::{QueueName, TenantId, Timestamp};

use super::row::column;
use super::sql;
use crate::StorageError;

/// A group for which old messages wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The group, `__QUEUE_MODE__` for pops without one; `None`: nobody consumes these partitions.
    pub group: Option<String>,
    /// Partitions whose oldest messages would go, had it consumed them.
    pub partitions: i64,
    /// When the oldest of these messages was stored.
    pub oldest: Timestamp,
}

/// Who keeps `completedRetentionSeconds` of a queue from deleting, most partitions first. Empty where the option is off or
/// nothing waits.
///
/// # Errors
/// [`StorageError::Pg`] when the database was not reached.
pub async fn queue_pins(pool: &Pool, tenant: TenantId, queue: &QueueName) -> Result<Vec<Pin>, StorageError> {
    let rows = pool.get().await?.query(sql::QUEUE_PINS, &[&tenant.0, &queue.as_str()]).await?;
    rows.iter()
        .map(|row| {
            let oldest: PgTimestamp = column(row, "oldest")?;
            Ok(Pin {
                group: column(row, "consumer_group")?,
                partitions: column(row, "partitions")?,
                oldest: oldest.0,
            })
        })
        .collect()
}
