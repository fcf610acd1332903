//! The broker as a library: owns pool, caches, waits and tasks.

pub mod api;
