//! Administration and background work on a real database.

#![allow(clippy::unwrap_used)]

#[path = "admin/support.rs"]
mod support;

#[path = "admin/configure.rs"]
mod configure;
#[path = "admin/delete.rs"]
mod delete;
#[path = "admin/depth.rs"]
mod depth;
#[path = "admin/dlq.rs"]
mod dlq;
#[path = "admin/leases.rs"]
mod leases;
#[path = "admin/listing.rs"]
mod listing;
#[path = "admin/plans.rs"]
mod plans;
#[path = "admin/retention.rs"]
mod retention;
#[path = "admin/steps.rs"]
mod steps;
