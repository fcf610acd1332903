//! What can go wrong with a private cluster.

use std::io;
use std::path::{Path, PathBuf};

/// Why a private cluster could not be found, started or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// No directory with `initdb` and `postgres` was found.
    #[error(
        "no PostgreSQL server binaries (initdb, postgres) found; looked in PATH and in {looked_in}. \
         Install PostgreSQL 14 or later: Debian or Ubuntu `apt-get install postgresql`, \
         Fedora `dnf install postgresql-server`, Alpine `apk add postgresql`, macOS `brew install postgresql@17`; \
         or name the directory that holds initdb and postgres"
    )]
    NotFound {
        /// The places that were tried, for people.
        looked_in: String,
    },
    /// A directory was named that does not hold the two binaries.
    #[error("{} holds no usable `initdb` and `postgres`: {reason}", dir.display())]
    BadBinDir {
        /// The directory that was named.
        dir: PathBuf,
        /// What is missing or does not run.
        reason: String,
    },
    /// The binaries are older than the supported versions.
    #[error("{} is PostgreSQL {found}; 14 or later is needed", dir.display())]
    TooOld {
        /// Where the binaries are.
        dir: PathBuf,
        /// Their major version.
        found: u32,
    },
    /// The directory was made by a major version for which there are no binaries.
    #[error(
        "{} was made by PostgreSQL {directory}, but the binaries found are PostgreSQL {binaries}; \
         name the directory with the binaries of {directory}, or use another data directory",
        data_dir.display()
    )]
    Version {
        /// The data directory.
        data_dir: PathBuf,
        /// The major version that made it.
        directory: u32,
        /// The major version of the best binaries that were found.
        binaries: u32,
    },
    /// A living process owns this directory.
    #[error("{} is in use by process {pid}", data_dir.display())]
    Held {
        /// The data directory.
        data_dir: PathBuf,
        /// The process that holds it.
        pid: i32,
    },
    /// Started by root, and there is no other user to run the server as.
    #[error("PostgreSQL refuses to run as root, and neither user `postgres` nor user `nobody` exists")]
    NoAccount,
    /// The user that runs the server cannot reach the data directory.
    #[error(
        "user `{user}`, which runs PostgreSQL, cannot pass through {}; choose a data directory that other users can reach",
        path.display()
    )]
    Unreachable {
        /// The user that runs the server.
        user: String,
        /// The first directory on the way that it may not enter.
        path: PathBuf,
    },
    /// initdb or the server ended with an error.
    #[error("{program} failed: {output}")]
    Failed {
        /// The program that failed.
        program: &'static str,
        /// The end of what it said.
        output: String,
    },
    /// The server did not become ready, or did not stop, in time.
    #[error("PostgreSQL in {} did not {what} within {seconds} s", data_dir.display())]
    TimedOut {
        /// The data directory.
        data_dir: PathBuf,
        /// What was waited for, as a verb.
        what: &'static str,
        /// How long it was waited for, in seconds.
        seconds: u64,
    },
    /// A file, a process or a port refused.
    #[error("{what} {}", path.display())]
    Io {
        /// What was tried, as a verb.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
}

impl ClusterError {
    /// A closure for `map_err` that keeps what was tried on which path.
    pub(crate) fn io(what: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> ClusterError {
        let path = path.as_ref().to_path_buf();
        move |source| ClusterError::Io { what, path, source }
    }
}
