//! What goes into a broker call and what comes out: plain values, no JSON and no rows.

mod admin;
mod data;
mod status;

pub use admin::*;
pub use data::*;
pub use status::*;
