//! `queen-server migrate`: the answer that there is none.

use std::process::ExitCode;

use queen_telemetry::{LogOptions, init_tracing};

const TEXT: &str = "\
offline migration is not supported: Queen never reshapes tables. To change versions, start the new version on a new \
empty database, stop the producers, let the consumers drain the old one, repoint everybody and apply /configure \
again; keep the old database for the way back";

/// Says so on stderr and in the log; reads no configuration and opens no connection.
pub(crate) fn run() -> ExitCode {
    if init_tracing(&LogOptions::default()).is_ok() {
        tracing::error!(target: "migrate", "{TEXT}");
    }
    eprintln!("queen-server: {TEXT}");
    ExitCode::FAILURE
}
