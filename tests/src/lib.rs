//! Whole brokers on a real PostgreSQL, and what their tests share.

pub mod broker;
