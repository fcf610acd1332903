//! Finds PostgreSQL's binaries and runs a private cluster on this machine.
//!
//! It knows processes, files and signals, and no SQL: readiness is read from the files that the server keeps.
//! A cluster is either *persistent* ([`Cluster::start`]: password, survives its owner, is adopted by the next
//! one) or *ephemeral* ([`Cluster::start_ephemeral`]: trusts loopback, and is taken down and deleted when its
//! owner ends, even when that owner was killed).
//!
//! A data directory holds `pgdata/` (what initdb made), `sock/` (the socket), `port`, `password`,
//! `arguments`, `owner.lock` and `postgres.log`.

mod account;
mod binaries;
mod cluster;
pub mod dev;
mod error;
mod initdb;
mod lock;
mod options;
mod pidfile;
mod port;
mod process;
mod server;
mod socket;
mod watchdog;

pub use binaries::Binaries;
pub use cluster::{Cluster, Shutdown};
pub use error::ClusterError;
pub use options::ClusterOptions;
