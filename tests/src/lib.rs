//! Whole brokers on a real PostgreSQL, and what their tests share.

pub mod broker;

// Invariants: a reference model, random operations, and what must hold of tables and deliveries.
pub mod build;
pub mod failpoint;
pub mod history;
pub mod model;
pub mod scene;
pub mod seed;
pub mod tables;
