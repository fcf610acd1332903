//! Notes of applications about messages.

use bytes::Bytes;
use queen_pg::{PgTimestamp, Row, ToSql};
use queen_types::{PartitionId, TenantId, Timestamp, Uuid};

use crate::ack::dead_letter::json_copy;
use crate::admin::row::column;
use crate::{Storage, StorageError, sql};

/// A note to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTrace {
    /// Partition of the message; neither need exist.
    pub partition: PartitionId,
    /// Its key, up to 255 characters.
    pub transaction_id: String,
    /// Who says so.
    pub group: String,
    /// What kind of note it is, up to 100 characters.
    pub event_type: String,
    /// One JSON value.
    pub data: Bytes,
    /// Names to find it by.
    pub names: Vec<String>,
}

/// A note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Its id.
    pub id: Uuid,
    /// What kind of note it is.
    pub event_type: String,
    /// What was noted, byte for byte.
    pub data: Bytes,
    /// Who said so.
    pub group: String,
    /// When.
    pub created_at: Timestamp,
    /// Key of the message.
    pub transaction_id: String,
    /// Partition of the message.
    pub partition: PartitionId,
    /// Names that it can be found by.
    pub names: Vec<String>,
    /// Queue and partition by name, while they exist; only in listings by name.
    pub place: Option<(String, String)>,
}

/// A name that notes have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceName {
    /// The name.
    pub name: String,
    /// Notes with it.
    pub notes: i64,
    /// Messages that they are about.
    pub messages: i64,
    /// When the newest was written.
    pub last_seen: Timestamp,
}

impl Storage {
    /// Writes a note; answers its id.
    ///
    /// # Errors
    /// See [`StorageError`].
    ///
    /// # Cancel safety
    /// A dropped call may have written it.
    pub async fn add_trace(&self, tenant: TenantId, trace: &NewTrace) -> Result<Uuid, StorageError> {
        let mut conn = self.inner.pool.get().await?;
        let names: Vec<&str> = trace.names.iter().map(String::as_str).collect();
        let (data, copy) = (&trace.data[..], json_copy(&trace.data));
        let (key, group, kind) =
            (trace.transaction_id.as_str(), trace.group.as_str(), trace.event_type.as_str());
        let params: [&(dyn ToSql + Sync); 8] =
            [&tenant.0, &trace.partition.0, &key, &group, &kind, &data, &copy, &names];
        let rows = conn.query(sql::TRACES_INSERT, &params).await?;
        column(rows.first().ok_or(StorageError::Misaligned("trace"))?, "id")
    }

    /// The notes about a message, oldest first.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn traces_of(
        &self,
        tenant: TenantId,
        partition: PartitionId,
        transaction_id: &str,
    ) -> Result<Vec<Trace>, StorageError> {
        let mut conn = self.inner.pool.get().await?;
        let rows = conn.query(sql::TRACES_OF_MESSAGE, &[&tenant.0, &partition.0, &transaction_id]).await?;
        Ok(rows.iter().map(trace).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// A page of the notes with a name, oldest first, and how many there are.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn traces_by_name(
        &self,
        tenant: TenantId,
        name: &str,
        limit: i64,
        offset: i64,
    ) -> Result<(Vec<Trace>, i64), StorageError> {
        let mut conn = self.inner.pool.get().await?;
        let rows = conn.query(sql::TRACES_BY_NAME, &[&tenant.0, &name, &limit, &offset]).await?;
        let total = rows.first().map_or(Ok(0), |row| column(row, "total"))?;
        let traces = rows.iter().map(trace).collect::<Result<Vec<_>, _>>()?;
        Ok((traces.into_iter().flatten().collect(), total))
    }

    /// A page of the names that notes have, most recently used first, and how many there are.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn trace_names(
        &self,
        tenant: TenantId,
        limit: i64,
        offset: i64,
    ) -> Result<(Vec<TraceName>, i64), StorageError> {
        let mut conn = self.inner.pool.get().await?;
        let rows = conn.query(sql::TRACES_NAMES, &[&tenant.0, &limit, &offset]).await?;
        let total = rows.first().map_or(Ok(0), |row| column(row, "total"))?;
        let mut names = Vec::with_capacity(rows.len());
        for row in &rows {
            let Some(name) = column::<Option<String>>(row, "trace_name")? else { continue };
            names.push(TraceName {
                name,
                notes: column(row, "notes")?,
                messages: column(row, "messages")?,
                last_seen: column::<PgTimestamp>(row, "last_seen")?.0,
            });
        }
        Ok((names, total))
    }
}

/// `None` for the lone row of an empty page.
fn trace(row: &Row) -> Result<Option<Trace>, StorageError> {
    let Some(id) = column::<Option<Uuid>>(row, "id")? else { return Ok(None) };
    let data: Option<&[u8]> = column(row, "data_raw")?;
    let queue: Option<String> = column(row, "queue")?;
    let partition: Option<String> = column(row, "partition")?;
    Ok(Some(Trace {
        id,
        event_type: column(row, "event_type")?,
        data: data.map(Bytes::copy_from_slice).unwrap_or_default(),
        group: column::<Option<String>>(row, "consumer_group")?.unwrap_or_default(),
        created_at: column::<PgTimestamp>(row, "created_at")?.0,
        transaction_id: column(row, "transaction_id")?,
        partition: PartitionId(column(row, "partition_id")?),
        names: column(row, "names")?,
        place: queue.zip(partition),
    }))
}
