//! PostgreSQL access: a bounded pool, TLS, a deadline on every statement, pipelined transactions, and the one
//! table from SQLSTATE to [`FailureClass`].
//!
//! A [`Pool`] hands out [`Conn`]s. Whatever a `Conn` does is bounded by [`PgOptions::statement_timeout`]; a call that
//! runs out of time, or whose future is dropped, is cancelled on the server and its connection is thrown away. So a
//! connection that is back in the pool is idle, outside any transaction, and no cancel request can still hit it.
//!
//! This crate knows no table and no statement of the broker.

mod classify;
mod conn;
mod deadline;
mod error;
mod line;
mod options;
mod pipeline;
mod pool;
mod pooler;
mod seats;
mod session;
mod tid;
mod timestamp;
mod tls;
mod tx;

pub use classify::classify;
pub use conn::Conn;
pub use error::PgError;
pub use options::{PgOptions, TlsMode};
pub use pipeline::{Step, step};
pub use pool::{Pool, PoolStatus};
pub use queen_types::FailureClass;
pub use tid::Tid;
pub use timestamp::PgTimestamp;
pub use tokio_postgres::types;
pub use tokio_postgres::{Row, SimpleQueryMessage, types::ToSql};
pub use tx::Tx;
