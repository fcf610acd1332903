//! The HTTP edge of the broker: routes to broker calls, errors to status codes.
//!
//! [`Server`] is a listener with a graceful end; [`router`] is the same set of routes as a hyper service for a host
//! that has its own. JSON keys live in `queen-wire`, what a call does in `queen-core`; here is only who is called.

mod app;
mod body;
mod context;
mod error;
mod handed;
mod options;
mod reply;
mod router;
mod routes;
mod server;
mod service;
mod shutdown;
mod stats;

pub use options::{HttpOptions, Render, ShownConfig};
pub use reply::Answer;
pub use router::{Access, access};
pub use server::{BindError, Drained, Server};
pub use service::{Router, router};
