//! Claims and the acks of what they took, on a real database.

#![allow(clippy::unwrap_used)]

#[path = "claims/support.rs"]
mod support;

#[path = "claims/alone.rs"]
mod alone;
#[path = "claims/full_ack.rs"]
mod full_ack;
