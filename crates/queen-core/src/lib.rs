//! The broker as a library: it owns the pool, the caches, the waits and the tasks, starts and stops cleanly, and any
//! number of brokers live in one process.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use queen_core::api::PushItem;
//! use queen_core::{Broker, BrokerOptions};
//! use queen_types::{PartitionName, QueueName, TenantId};
//!
//! let broker = Broker::start(BrokerOptions::default()).await?;
//! let item = PushItem {
//!     queue: QueueName::new("orders")?,
//!     partition: PartitionName::default(),
//!     transaction_id: None,
//!     payload: bytes::Bytes::from_static(b"{\"n\":1}"),
//!     trace_id: None,
//! };
//! let results = broker.push(TenantId::DEFAULT, vec![item], None).await;
//! println!("{:?}", results[0].status);
//! broker.shutdown().await;
//! # Ok(())
//! # }
//! ```

pub mod api;

mod ack;
mod admin;
mod admission;
mod announce;
mod boot;
mod broker;
mod caches;
mod error;
mod flight;
mod floor;
mod fusion;
mod groups;
mod health;
mod hot;
mod leases;
mod lifecycle;
mod messages;
mod modes;
mod options;
mod pop;
mod push;
mod reconcile;
mod spool;
mod supervise;
mod traces;
mod transaction;
mod undelivered;
mod upkeep;
mod wait;

pub use broker::Broker;
pub use error::{Error, StartError};
pub use lifecycle::Fatal;
pub use modes::{Mode, Modes};
pub use options::BrokerOptions;
pub use queen_admission::{
    Lane as AdmissionLane, Options as AdmissionOptions, PerLane, Snapshot as AdmissionSnapshot,
};
pub use queen_pg::{PgOptions, PoolStatus, TlsMode};
pub use queen_spool::{
    Aside, Event, FileState, FileStatus, FsyncMode, Listing, OnConflict, QuarantineError, Quarantined, Spool,
    SpoolOptions, Status as SpoolStatus,
};
pub use spool::{BufferOptions, Drained};
pub use supervise::{Beat, RestartLaw, TaskState};
pub use undelivered::Receipt;
pub use upkeep::UpkeepOptions;
