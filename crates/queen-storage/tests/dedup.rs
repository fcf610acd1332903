//! Deduplication with the memory of stored hashes switched on, on a real database: it may spare a search, and never a
//! duplicate.

#![allow(clippy::unwrap_used)]

#[path = "dedup/support.rs"]
mod support;

#[path = "dedup/brokers.rs"]
mod brokers;
#[path = "dedup/memory.rs"]
mod memory;
#[path = "dedup/window.rs"]
mod window;
