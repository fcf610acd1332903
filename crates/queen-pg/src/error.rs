use crate::classify::{classify, is_stale_statement};
use deadpool_postgres::{PoolError, TimeoutType};
use queen_types::FailureClass;
use std::error::Error as _;
use std::time::Duration;

/// Why a call to the database did not give its result.
#[derive(Debug, thiserror::Error)]
pub enum PgError {
    /// All connections of the pool stayed in use for as long as a caller may wait.
    #[error("no database connection became free within {waited:?}")]
    PoolWait {
        /// How long the caller waited.
        waited: Duration,
    },
    /// No connection could be opened, or the server refused it.
    #[error("cannot connect to the database: {message}")]
    Connect {
        /// What went wrong, with its causes.
        message: String,
        /// The server's code, when it was a server that refused.
        sqlstate: Option<String>,
    },
    /// The TLS material of the options cannot be used.
    #[error("TLS to the database: {0}")]
    Tls(String),
    /// Statements of one session ran on several connections to the server, or the other way round.
    #[error("transaction pooling detected; connect directly or use session mode")]
    Pooler,
    /// The deadline passed. Whether the work was done is unknown; a cancel was sent, the connection is gone.
    #[error("no answer from the database within {after:?}; the outcome is unknown")]
    Timeout {
        /// The deadline.
        after: Duration,
    },
    /// The server answered with an error; nothing of the call (of the transaction) is in effect.
    #[error("{message} (SQLSTATE {sqlstate})")]
    Db {
        /// Five characters.
        sqlstate: String,
        /// The server's primary message.
        message: String,
        /// The server's detail, if any.
        detail: Option<String>,
        /// The server's hint, if any.
        hint: Option<String>,
    },
    /// The connection is lost. When it broke during a call, the outcome is unknown.
    #[error("the database connection is lost: {0}")]
    Closed(String),
    /// A parameter or a column does not have the type that the statement says: a mistake of the caller.
    #[error("a value does not fit its statement: {0}")]
    Value(String),
}

impl PgError {
    /// What the failure means for whoever called.
    ///
    /// A refused login (class 28), a missing database (3D000) and a pooler that splits sessions are [`FailureClass::Config`]; any other failure to
    /// get a connection is transient, whatever its code.
    pub fn class(&self) -> FailureClass {
        match self {
            PgError::Db { sqlstate, message, .. } => classify(Some(sqlstate), message),
            PgError::Connect { sqlstate: Some(code), .. } if code.starts_with("28") || code == "3D000" => {
                FailureClass::Config
            }
            PgError::Tls(_) | PgError::Pooler => FailureClass::Config,
            PgError::Value(_) => FailureClass::Permanent,
            PgError::PoolWait { .. }
            | PgError::Connect { .. }
            | PgError::Timeout { .. }
            | PgError::Closed(_) => FailureClass::Transient,
        }
    }

    /// The server's code, when a server answered.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            PgError::Db { sqlstate, .. } => Some(sqlstate),
            PgError::Connect { sqlstate, .. } => sqlstate.as_deref(),
            _ => None,
        }
    }

    /// Whether no connection could be had, so that nothing was sent.
    pub fn is_pool(&self) -> bool {
        matches!(self, PgError::PoolWait { .. } | PgError::Connect { .. } | PgError::Tls(_))
    }

    /// Whether the work may have been done although the call failed.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self, PgError::Timeout { .. } | PgError::Closed(_))
    }

    /// Whether the server ended the session with this error: shut down, crash, an administrator, too long idle.
    pub(crate) fn ends_session(&self) -> bool {
        matches!(self, PgError::Db { sqlstate, .. } if sqlstate.starts_with("57P") || sqlstate == "25P03")
    }

    pub(crate) fn is_stale_statement(&self) -> bool {
        matches!(self, PgError::Db { sqlstate, message, .. } if is_stale_statement(sqlstate, message))
    }

    pub(crate) fn connect(error: tokio_postgres::Error) -> PgError {
        let sqlstate = error.code().map(|code| code.code().to_owned());
        PgError::Connect { message: with_causes(&error), sqlstate }
    }

    pub(crate) fn connect_timeout(after: Duration) -> PgError {
        PgError::Connect { message: format!("no connection within {after:?}"), sqlstate: None }
    }

    pub(crate) fn unreachable(why: &str) -> PgError {
        PgError::Connect { message: why.to_owned(), sqlstate: None }
    }

    pub(crate) fn pool_closed() -> PgError {
        PgError::Closed("the pool is closed".to_owned())
    }

    pub(crate) fn pool(error: PoolError, wait: Duration, connect: Duration) -> PgError {
        match error {
            PoolError::Timeout(TimeoutType::Wait) => PgError::PoolWait { waited: wait },
            PoolError::Timeout(_) => PgError::connect_timeout(connect),
            PoolError::Backend(error) => PgError::connect(error),
            PoolError::Closed => PgError::pool_closed(),
            other => PgError::Connect { message: other.to_string(), sqlstate: None },
        }
    }
}

impl From<tokio_postgres::Error> for PgError {
    fn from(error: tokio_postgres::Error) -> PgError {
        if let Some(db) = error.as_db_error() {
            let mut message = db.message().to_owned();
            // The text is in the server's language, the routine is not.
            if db.routine() == Some("RevalidateCachedQuery") && !message.contains("cached plan") {
                message = format!("cached plan: {message}");
            }
            return PgError::Db {
                sqlstate: db.code().code().to_owned(),
                message,
                detail: db.detail().map(str::to_owned),
                hint: db.hint().map(str::to_owned),
            };
        }
        let text = with_causes(&error);
        let lost = error.is_closed()
            || error.source().is_some_and(|cause| cause.is::<std::io::Error>())
            || text.starts_with("unexpected message")
            || text.starts_with("error parsing response");
        if lost { PgError::Closed(text) } else { PgError::Value(text) }
    }
}

/// The error and what caused it, in one line: tokio-postgres says only "db error" by itself.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
