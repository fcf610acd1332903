//! Tables of variable, value, result.

#![allow(clippy::unwrap_used)]

#[path = "config/support.rs"]
mod support;

#[path = "config/effective.rs"]
mod effective;
#[path = "config/file.rs"]
mod file;
#[path = "config/options.rs"]
mod options;
#[path = "config/report.rs"]
mod report;
#[path = "config/together.rs"]
mod together;
#[path = "config/values.rs"]
mod values;
#[path = "config/warnings.rs"]
mod warnings;
