//! What can go wrong in an administrative call.

use queen_pg::PgError;
use queen_pg::Row;
use queen_types::FailureClass;
use tokio_postgres::types::FromSql;

/// Failure of an administrative call.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database call failed.
    #[error(transparent)]
    Pg(#[from] PgError),
    /// A stored value is not one that this product writes, for instance a name beyond its bounds.
    #[error("column {column} holds what it never should: {reason}")]
    Stored {
        /// The column of the answer.
        column: &'static str,
        /// What was found.
        reason: String,
    },
    /// A queue was deleted and created again under the call's hands more often than the call repeats itself.
    #[error("the queue was deleted while it was being configured")]
    Vanished,
}

impl Error {
    /// What the failure means for the caller.
    pub fn class(&self) -> FailureClass {
        match self {
            Error::Pg(error) => error.class(),
            Error::Stored { .. } => FailureClass::Permanent,
            Error::Vanished => FailureClass::Transient,
        }
    }
}

/// One column of a row by name.
pub(super) fn column<'r, T: FromSql<'r>>(row: &'r Row, name: &'static str) -> Result<T, Error> {
    row.try_get(name).map_err(|e| Error::Stored { column: name, reason: e.to_string() })
}

/// Checks a stored name, which was checked when it was written.
pub(super) fn named<N>(
    column: &'static str,
    text: &str,
    parse: impl FnOnce(&str) -> Result<N, queen_types::NameError>,
) -> Result<N, Error> {
    parse(text).map_err(|e| Error::Stored { column, reason: e.to_string() })
}
