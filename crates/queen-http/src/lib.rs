//! The HTTP edge of the broker: routes to broker calls, errors to status codes.

mod options;

pub use options::{HttpOptions, Render};
