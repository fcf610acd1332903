//! What goes into a broker call and what comes out: plain values, no JSON and no rows.

mod admin;
mod data;
mod groups;
mod messages;
mod status;

pub use admin::*;
pub use data::*;
pub use groups::*;
pub use messages::*;
pub use queen_storage::traces::{NewTrace, Trace, TraceName};
pub use status::*;
