//! Broker-wide flags, and whether the schema is complete.

use crate::{Storage, StorageError, sql};

/// A flag as its row says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagRow {
    /// Its key.
    pub key: String,
    /// Its value.
    pub enabled: bool,
    /// Counts its changes; 0 for a row that somebody wrote by hand.
    pub rev: i64,
}

impl Storage {
    /// The flags of these keys that have a row.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn flags(&self, keys: &[&str]) -> Result<Vec<FlagRow>, StorageError> {
        let mut conn = self.inner.pool.get().await?;
        let rows = conn.query(sql::STATE_FLAGS, &[&keys]).await?;
        let flag = |row: &queen_pg::Row| -> Result<FlagRow, queen_pg::PgError> {
            Ok(FlagRow {
                key: row.try_get("key")?,
                enabled: row.try_get("enabled")?,
                rev: row.try_get("rev")?,
            })
        };
        Ok(rows.iter().map(flag).collect::<Result<_, _>>()?)
    }

    /// Sets a flag; its revision afterwards.
    ///
    /// # Errors
    /// See [`StorageError`]; unless its outcome is unknown, the row is as it was.
    ///
    /// # Cancel safety
    /// The row may be written all the same.
    pub async fn set_flag(&self, key: &str, enabled: bool) -> Result<i64, StorageError> {
        let mut conn = self.inner.pool.get().await?;
        let rows = conn.query(sql::STATE_SET_FLAG, &[&key, &enabled]).await?;
        let row = rows.first().ok_or(StorageError::Misaligned("set_flag"))?;
        Ok(row.try_get("rev").map_err(queen_pg::PgError::from)?)
    }

    /// Whether the schema is complete. A schema that is missing, or being restored, is not.
    pub async fn schema_stamped(&self) -> bool {
        let Ok(mut conn) = self.inner.pool.get().await else { return false };
        let rows = conn.query(sql::STATE_STAMPED, &[]).await;
        rows.ok().and_then(|rows| rows.first().and_then(|row| row.try_get("stamped").ok())).unwrap_or(false)
    }
}
