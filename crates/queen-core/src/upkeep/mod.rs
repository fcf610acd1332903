//! Background work: retention, the notes it goes by, statistics. One broker at a time does a run of each task; which one
//! is decided by lease rows in the database. A broker without work wakes when the next task is due, and no earlier.

mod collector;
mod held;
mod options;
mod retention;
mod runner;
mod status;
mod summary;
mod tally;

use std::sync::Weak;
use std::time::Duration;

use queen_admission::Lane;
use queen_storage::maintenance::Job;
use queen_storage::stats::Refreshed;
use queen_storage::{Storage, StorageError};
use queen_types::TenantId;

use crate::broker::Inner;
use crate::supervise::Beat;
use crate::{Broker, Error};

pub(crate) use collector::collect;
pub(crate) use held::Held;
pub use options::UpkeepOptions;
pub(crate) use runner::run;
pub(crate) use summary::Summaries;
pub(crate) use tally::Tally;

/// How long notes are gathered before they are written.
const GATHER: Duration = Duration::from_millis(500);
/// How long a piece of work may take before it counts as late.
const WORK: Duration = Duration::from_secs(120);
/// Pause after notes could not be written.
const PAUSE: Duration = Duration::from_secs(5);
/// Longest recomputation of statistics.
pub(crate) const STATS_LIMIT: Duration = Duration::from_secs(900);

/// Writes the notes on partitions that pushes ask for, soon after and together, until the broker is gone.
pub(crate) async fn marks(inner: Weak<Inner>, storage: Storage, beat: Beat) {
    loop {
        beat.idle();
        storage.marks_wanted().await;
        tokio::time::sleep(GATHER).await;
        let Some(inner) = inner.upgrade() else { return };
        beat.within(WORK);
        let written = async {
            let _slot = inner.admission.enter(Lane::Maint, TenantId::DEFAULT).await?;
            inner.storage.write_marks().await
        };
        if let Err(error) = written.await {
            drop(inner);
            tracing::debug!(target: "retention", %error, "notes on partitions are written later");
            beat.idle();
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Broker {
    /// Recomputes the statistics now. `None`: another broker does at this moment.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn refresh_stats(&self) -> Result<Option<Refreshed>, Error> {
        Ok(refresh_stats(&self.inner).await?)
    }

    /// Deletes partitions that were empty and unused for `days`, at once instead of when their turn comes; at most 500. How
    /// many went.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn clean_up_partitions(&self, days: u32) -> Result<usize, Error> {
        let _slot = self.inner.admission.enter(Lane::Maint, TenantId::DEFAULT).await?;
        Ok(self.inner.storage.delete_unused_partitions(days.max(1), None).await?.0.len())
    }

    /// What is known of the background tasks of all brokers.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn jobs(&self) -> Result<Vec<Job>, Error> {
        Ok(self.inner.storage.jobs().await?)
    }

    /// Switches a background task on or off for all brokers; `false`: there is no such task.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn switch_job(&self, task: &str, enabled: bool) -> Result<bool, Error> {
        Ok(self.inner.storage.switch_task(task, enabled).await?)
    }
}

/// Recomputes the statistics under their lock.
pub(crate) async fn refresh_stats(inner: &Inner) -> Result<Option<Refreshed>, StorageError> {
    let _slot = inner.admission.enter(Lane::Maint, TenantId::DEFAULT).await?;
    inner.storage.refresh_stats(STATS_LIMIT).await
}
