//! Tracing setup and the Prometheus recorder: what one process says about itself.
//!
//! Only a binary calls [`init_tracing`] and [`Recorder::install`]; libraries emit events and metrics and never decide
//! where they go. Nothing here listens on a socket: the page that [`Recorder::render`] returns is served by whoever
//! serves HTTP.

mod catalogue;
mod docs;
mod logging;
mod page;
mod panic;
mod process;
mod rates;
mod recorder;
mod text_format;

pub use catalogue::{CATALOGUE, Family, Kind, Label, names};
pub use docs::docs_markdown;
pub use logging::{FilterError, InitError, LogOptions, check_filter, init_tracing};
pub use panic::install_panic_hook;
pub use process::{cpu_micros, resident_bytes};
pub use rates::DatabaseNumbers;
pub use recorder::{BuildInfo, InstallError, Recorder};
