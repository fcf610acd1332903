//! Background work of whole brokers: retention under traffic, statistics, and what an idle broker costs.

#[path = "idle.rs"]
mod idle;
#[path = "retention.rs"]
mod retention;
#[path = "statistics.rs"]
mod statistics;
