use std::io;
use std::path::PathBuf;

/// Why a spool could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory cannot be made, written, synced or read.
    #[error("the spool directory {dir} cannot be used: {error}")]
    Unusable {
        /// The directory.
        dir: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Another broker owns the directory.
    #[error("the spool directory {dir} belongs to another broker: {holder}")]
    Held {
        /// The directory.
        dir: PathBuf,
        /// Who, as the lock file tells.
        holder: String,
    },
}

/// Why an event was not accepted; it is nowhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Free space would fall below the bound.
    #[error("the spool's file system has {free} bytes left, of which {reserve} are not for the spool")]
    Full {
        /// Free bytes.
        free: u64,
        /// Bytes that have to stay free.
        reserve: u64,
    },
    /// The spool is as large as it may be.
    #[error("the spool holds {bytes} bytes and may hold {max}")]
    Ceiling {
        /// Bytes of its files.
        bytes: u64,
        /// The bound.
        max: u64,
    },
    /// The system did not write or sync it.
    #[error("the spool cannot be written: {0}")]
    Disk(String),
    /// The spool is closed, or there is none.
    #[error("there is no spool")]
    Closed,
}
