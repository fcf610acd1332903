//! Test support: a private PostgreSQL per run, a cloned database per test, a TCP proxy that can be cut.
//!
//! `cargo xtask test` starts one cluster for the whole run and names it in `QUEEN_TEST_PG`. Without that variable
//! the first [`db`] of a test process starts a cluster of its own, which ends with the process, however it ends.

mod database;
mod pooler;
mod proxy;
mod server;
mod template;
mod wait;

pub use database::{TestDb, db, empty_db};
pub use pooler::{Pooler, Turn};
pub use proxy::FaultProxy;
pub use server::VARIABLE;
pub use wait::{wait_for, wait_until};
