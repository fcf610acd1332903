//! Creating a queue and editing its options.

use queen_pg::{Conn, Pool, step};
use queen_types::{OptionsEdit, QueueId, QueueName, QueueOptions, TenantId};

use super::options_row::{OptionTexts, QueueRow, option_params};
use super::sql;
use crate::StorageError;

/// How often a configure starts over because the queue was deleted between its two steps.
const ATTEMPTS: usize = 5;

/// Creates the queue from the defaults of [`QueueOptions`], or edits the one that exists: with `replace` everything
/// that `edit` leaves out goes back to its default, otherwise it keeps its value.
///
/// One transaction. Concurrent edits of one queue serialise on its row, so each merges into the result of the one
/// before; concurrent creations of one name end with one row that carries both edits.
///
/// # Errors
/// [`StorageError::Pg`] when the database refused or was not reached; nothing was changed then, except when the outcome of a
/// commit is unknown (a deadline). [`StorageError::Gone`] when somebody kept deleting the queue.
pub async fn configure(
    pool: &Pool,
    tenant: TenantId,
    queue: &QueueName,
    replace: bool,
    edit: &OptionsEdit,
) -> Result<(QueueId, QueueOptions), StorageError> {
    let mut conn = pool.get().await?;
    for _ in 0..ATTEMPTS {
        if let Some(done) = configure_once(&mut conn, tenant, queue, replace, edit).await? {
            return Ok(done);
        }
    }
    Err(StorageError::Gone("the queue"))
}

/// `None` when the queue existed at the insert and was gone at the lock.
async fn configure_once(
    conn: &mut Conn,
    tenant: TenantId,
    queue: &QueueName,
    replace: bool,
    edit: &OptionsEdit,
) -> Result<Option<(QueueId, QueueOptions)>, StorageError> {
    let mut fresh = QueueOptions::default();
    edit.apply(&mut fresh);
    let texts = OptionTexts::of(&fresh);
    let name = queue.as_str();

    let mut tx = conn.begin();
    let create = option_params([&tenant.0, &name], &fresh, &texts);
    let rows =
        tx.run(&[step(sql::QUEUE_CREATE, &create), step(sql::QUEUE_LOCK, &[&tenant.0, &name])]).await?;
    let created = rows.first().is_some_and(|r| !r.is_empty());
    let Some(row) = rows.get(1).and_then(|r| r.first()) else {
        tx.rollback().await?;
        return Ok(None);
    };
    let stored = QueueRow::decode(row)?;
    if created {
        tx.commit().await?;
        return Ok(Some((stored.id, stored.options)));
    }

    let merged = if replace {
        fresh
    } else {
        let mut merged = stored.options.clone();
        edit.apply(&mut merged);
        merged
    };
    if merged == stored.options {
        tx.commit().await?;
    } else {
        let texts = OptionTexts::of(&merged);
        let params = option_params([&stored.id.0, &name], &merged, &texts);
        tx.commit_with(&[step(sql::QUEUE_UPDATE, &params)]).await?;
    }
    Ok(Some((stored.id, merged)))
}

/// One queue with all its options, `None` when there is none.
///
/// # Errors
/// [`StorageError::Pg`] when the database was not reached; [`StorageError::Misaligned`] when the row holds what this product does not
/// write.
pub async fn load_queue(
    pool: &Pool,
    tenant: TenantId,
    queue: &QueueName,
) -> Result<Option<QueueRow>, StorageError> {
    let mut conn = pool.get().await?;
    let name = queue.as_str();
    let rows = conn.query(sql::QUEUE_LOAD, &[&tenant.0, &name]).await?;
    rows.first().map(QueueRow::decode).transpose()
}
