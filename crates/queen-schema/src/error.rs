use queen_pg::{FailureClass, PgError};
use std::time::Duration;

/// Why the schema could not be brought into place.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The server is older than PostgreSQL 14.
    #[error(
        "the server at {server} is PostgreSQL {found}; Queen requires PostgreSQL 14 or newer. \
         PG_HOST, PG_PORT and PG_DATABASE name another server"
    )]
    ServerTooOld {
        /// What the server calls itself.
        found: String,
        /// Host and port that were asked.
        server: String,
    },
    /// Connecting or reading failed.
    #[error("{doing}: {source}")]
    Database {
        /// What was attempted.
        doing: &'static str,
        /// The failure.
        source: Box<PgError>,
    },
    /// A statement failed for good.
    #[error("schema statement failed ({file}, {object}, after {attempts} attempts): {source}{}", blame(.holders))]
    Statement {
        /// File of `schema/tables/`, or `grants`.
        file: &'static str,
        /// What the statement makes.
        object: String,
        /// How often it was tried.
        attempts: u32,
        /// The last failure, with its SQLSTATE.
        source: Box<PgError>,
        /// Sessions that hold locks on the tables, when it was a lock that could not be had.
        holders: Vec<String>,
    },
    /// Another session kept the applier's lock.
    #[error(
        "another session held the advisory lock {key} of the schema apply for {waited:?}{}",
        blame(.holders)
    )]
    LockWait {
        /// The key of the lock.
        key: i64,
        /// How long this one waited.
        waited: Duration,
        /// Who holds it.
        holders: Vec<String>,
    },
    /// The database holds another schema than this binary's.
    #[error(
        "the database was built by {found}, this is {own}. Use a fresh database (`queen-server dev --fresh` for a \
         development cluster), or restore into the version that built it; QUEEN_SCHEMA_MISMATCH=warn goes on regardless"
    )]
    Mismatch {
        /// What the schema version row says.
        found: String,
        /// What this binary would write there.
        own: String,
    },
    /// Objects exist under our names with another shape, which the applier never changes.
    #[error("the database has another shape than this version needs: {}", .differences.join("; "))]
    Shape {
        /// Each difference in words.
        differences: Vec<String>,
    },
    /// The role of this broker may not do what is needed.
    #[error("{0}")]
    Rights(String),
    /// A role that should get rights does not exist.
    #[error("the role {0:?} of QUEEN_DB_ROLE does not exist in the database; create it first")]
    UnknownRole(String),
    /// The embedded files cannot be read: a mistake in this build.
    #[error("the embedded schema cannot be read: {0}")]
    Manifest(String),
}

impl SchemaError {
    /// [`FailureClass::Transient`] when the same apply may succeed later without anybody acting, because the database
    /// could not be reached or went away; anything else is definitive.
    pub fn class(&self) -> FailureClass {
        match self {
            SchemaError::Database { source, .. } => source.class(),
            // A lock that 40 attempts did not get needs somebody to look at who holds it.
            SchemaError::Statement { source, .. } if is_lock_failure(source) => FailureClass::Config,
            SchemaError::Statement { source, .. } => source.class(),
            _ => FailureClass::Config,
        }
    }

    pub(crate) fn database(doing: &'static str) -> impl FnOnce(PgError) -> SchemaError {
        move |source| SchemaError::Database { doing, source: Box::new(source) }
    }
}

/// Deadlock, or a lock that did not come in time.
pub(crate) fn is_lock_failure(error: &PgError) -> bool {
    matches!(error.sqlstate(), Some("40P01" | "55P03"))
}

fn blame(holders: &[String]) -> String {
    if holders.is_empty() { String::new() } else { format!("; held by: {}", holders.join(", ")) }
}
