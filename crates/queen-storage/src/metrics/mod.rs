//! What brokers count, a row a minute: written by each for itself, read as series over all.

mod flush;
mod series;
pub mod sql;

pub use flush::{Lag, ParkedCount, Process, QueueCounts, QueueTally, WorkerCounts};
pub use series::Span;
