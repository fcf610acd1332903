//! Background work of whole brokers: retention under traffic, statistics, and what an idle broker costs.

#[path = "documented.rs"]
mod documented;
#[path = "idle.rs"]
mod idle;
#[path = "retention.rs"]
mod retention;
#[path = "statistics.rs"]
mod statistics;
