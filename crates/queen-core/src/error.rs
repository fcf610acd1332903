use std::sync::Arc;

use queen_pg::PgError;
use queen_schema::SchemaError;
use queen_storage::StorageError;
use queen_types::FailureClass;

/// Why a call was not performed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No database connection could be had; nothing was done.
    #[error("no database connection: {0}")]
    Pool(String),
    /// No write transaction could be opened in time; nothing was done, and a later call may do it.
    #[error("overloaded: {0}")]
    Overloaded(String),
    /// A statement failed; nothing was done, unless its outcome is unknown.
    #[error("{message}")]
    Statement {
        /// What the failure means for the caller.
        class: FailureClass,
        /// The server's code.
        sqlstate: Option<String>,
        /// In words.
        message: String,
    },
    /// A mistake of the caller.
    #[error("{0}")]
    BadInput(String),
    /// Well-formed, but this broker cannot do it as it is configured.
    #[error("{0}")]
    Refused(String),
}

impl From<StorageError> for Error {
    fn from(error: StorageError) -> Self {
        Error::from(&error)
    }
}

impl From<Arc<StorageError>> for Error {
    fn from(error: Arc<StorageError>) -> Self {
        Error::from(&*error)
    }
}

impl From<&StorageError> for Error {
    fn from(error: &StorageError) -> Self {
        if error.is_pool() {
            return Error::Pool(error.to_string());
        }
        if error.is_overload() {
            return Error::Overloaded(error.to_string());
        }
        Error::Statement {
            class: error.class(),
            sqlstate: error.sqlstate().map(str::to_owned),
            message: error.to_string(),
        }
    }
}

impl From<PgError> for Error {
    fn from(error: PgError) -> Self {
        StorageError::from(error).into()
    }
}

/// Why a broker did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The options cannot be used.
    #[error("configuration: {0}")]
    Config(String),
    /// The database cannot be reached.
    #[error("the database cannot be reached: {0}")]
    Connect(PgError),
    /// The spool cannot be used.
    #[error(transparent)]
    Spool(#[from] queen_spool::OpenError),
    /// The schema could not be applied.
    #[error("schema apply failed: {0}")]
    Schema(#[from] SchemaError),
}
