//! Reading rows by column name.

use queen_pg::Row;
use queen_types::NameError;
use tokio_postgres::types::FromSql;

use crate::StorageError;

/// One column of a row.
pub(crate) fn column<'r, T: FromSql<'r>>(row: &'r Row, name: &'static str) -> Result<T, StorageError> {
    row.try_get(name).map_err(|_| StorageError::Misaligned(name))
}

/// A stored name. It was checked when it was written; one that fails was written by something else.
pub(crate) fn named<'r, N>(
    row: &'r Row,
    name: &'static str,
    parse: impl FnOnce(&'r str) -> Result<N, NameError>,
) -> Result<N, StorageError> {
    parse(column(row, name)?).map_err(|_| StorageError::Misaligned(name))
}
