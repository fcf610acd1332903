//! Applies the schema of `schema/tables/` to a database at every start: once, safely, also beside other brokers.
//!
//! The catalogue is read first, and only what is missing is created. So a start on a complete database runs no DDL,
//! takes no lock and needs no ownership. The model only creates and adds: what exists with another shape is refused.
//!
//! Order of an apply: server version, catalogue, schema version row, rights; then, if anything is missing, the
//! advisory lock, the catalogue anew, one statement a transaction, unlock; at last a warning about invalid indexes.

mod applier;
mod catalogue;
mod error;
mod lock;
mod manifest;
mod plan;
mod rights;
mod run;
mod shape;
mod version;

pub use applier::{Applied, Applier, ApplyOptions};
pub use error::SchemaError;
pub use lock::ADVISORY_LOCK_KEY;
pub use manifest::{File, files};
pub use run::Patience;
pub use version::{SCHEMA_VERSION, fingerprint};

use queen_pg::Pool;

/// Brings the database to the schema of this binary. See [`Applier::apply`].
///
/// # Errors
/// See [`SchemaError`].
pub async fn apply(pool: &Pool, options: &ApplyOptions) -> Result<Applied, SchemaError> {
    Applier::new(options.clone()).apply(pool).await
}

/// What an apply would still have to do, in words; empty for a complete database. Changes nothing.
///
/// # Errors
/// See [`SchemaError`].
pub async fn check(pool: &Pool, options: &ApplyOptions) -> Result<Vec<String>, SchemaError> {
    Applier::new(options.clone()).check(pool).await
}
