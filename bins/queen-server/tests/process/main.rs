//! The program as an operator meets it: exit codes, signals, what it says, and a broker that works behind it.

#![allow(clippy::unwrap_used)]

mod cli;
mod dev;
mod health;
mod outage;
mod program;
mod serve;
mod settings;
mod shutdown;
mod spool;
