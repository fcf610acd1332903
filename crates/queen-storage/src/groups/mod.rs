//! Consumer groups as a whole: where they stand, moving their cursors, forgetting them.
//!
//! Whatever moves a cursor here writes a repair in the same transaction, so that brokers that keep the group's
//! partitions in memory learn of it.

mod delete;
mod list;
mod repairs;
mod seek;

use queen_pg::PgTimestamp;
use queen_types::{Group, TenantId, Timestamp};

use crate::{Storage, StorageError, sql};

pub use delete::Deleted;
pub use list::{CursorRow, GroupRow};
pub use repairs::Repair;
pub use seek::{SeekTo, Sought};

impl Storage {
    /// Changes where a group begins on partitions that have no cursor of it, on every queue that it is registered on;
    /// no cursor moves. Answers how many queues.
    ///
    /// # Errors
    /// See [`StorageError`].
    ///
    /// # Cancel safety
    /// A dropped call may have done it.
    pub async fn change_subscription(
        &self,
        tenant: TenantId,
        group: &Group,
        from: Timestamp,
    ) -> Result<u64, StorageError> {
        let mut conn = self.inner.pool.get().await?;
        let params: [&(dyn queen_pg::ToSql + Sync); 3] = [&tenant.0, &group.as_str(), &PgTimestamp(from)];
        Ok(conn.execute(sql::GROUPS_SUBSCRIPTION, &params).await?)
    }
}
