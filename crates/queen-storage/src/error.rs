use queen_pg::PgError;
use queen_types::FailureClass;

/// Why an operation of the log did not happen.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The database did not do it.
    #[error(transparent)]
    Pg(#[from] PgError),
    /// The database answered rows that its statement cannot produce.
    #[error("misaligned answer: {0}")]
    Misaligned(&'static str),
    /// The queue takes only encrypted payloads.
    #[error("the queue is encrypted and this broker has no encryption key; plain text is not stored")]
    Sealed,
    /// Too much waits to be written already; nothing was sent.
    #[error("more than {waiting_max} bytes of pushes wait for the database; retry later")]
    Overloaded {
        /// Bytes that may wait.
        waiting_max: usize,
    },
    /// Too many write transactions are open; nothing was sent.
    #[error("{0}; retry later")]
    NotAdmitted(String),
    /// A partition or queue vanished again and again while the operation ran.
    #[error("{0} was deleted while it was in use")]
    Gone(&'static str),
}

impl StorageError {
    /// What the failure means for the caller.
    pub fn class(&self) -> FailureClass {
        match self {
            StorageError::Pg(error) => error.class(),
            StorageError::Misaligned(_) | StorageError::Sealed => FailureClass::Permanent,
            StorageError::Gone(_) | StorageError::Overloaded { .. } | StorageError::NotAdmitted(_) => {
                FailureClass::Transient
            }
        }
    }

    /// The server's code, when there is one.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            StorageError::Pg(error) => error.sqlstate(),
            _ => None,
        }
    }

    /// Whether no connection could be had, so that nothing was sent.
    pub fn is_pool(&self) -> bool {
        matches!(self, StorageError::Pg(error) if error.is_pool())
    }

    /// Whether nothing was sent because too much is under way.
    pub fn is_overload(&self) -> bool {
        matches!(self, StorageError::Overloaded { .. } | StorageError::NotAdmitted(_))
    }

    /// Whether the same call may simply be made again: the server rolled it back for a passing reason.
    pub fn is_retryable(&self) -> bool {
        matches!(self, StorageError::Pg(PgError::Db { .. })) && self.class() == FailureClass::Transient
    }
}
