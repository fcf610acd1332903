//! The applier on a real server: once, twice, beside others, broken off, damaged, forbidden.
#![allow(clippy::unwrap_used)]

mod apply;
mod concurrent;
mod mismatch;
mod repair;
mod rights;
mod support;
mod versions;
