//! Routes against a real broker on a database of its own, over a real socket. The path of a test is the path of the
//! API.

#![allow(clippy::unwrap_used)]

mod ack;
mod configure;
mod edge;
mod lease;
mod lost;
mod operator;
mod outage;
mod pop;
mod push;
mod resources;
mod routing;
mod shutdown;
mod status;
mod supervision;
mod system;
mod transaction;
