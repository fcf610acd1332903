//! The configuration of this process, and the commands that only look at it.

use std::io::Write;
use std::process::ExitCode;

use queen_config::{ConfigErrors, Format, Loaded, Sources, check_text};
use queen_http::ShownConfig;
use queen_telemetry::{LogOptions, init_tracing};

use crate::args::ConfigFile;

/// Loads it, sets up the log and tells what is in force; `None` when it has problems, which are then told.
pub(crate) fn load(file: ConfigFile) -> anyhow::Result<Option<Loaded>> {
    let loaded = match queen_config::load(&Sources::from_process(file.0)) {
        Ok(loaded) => loaded,
        Err(errors) => {
            report(&errors);
            return Ok(None);
        }
    };
    init_tracing(&loaded.config.log)?;
    for line in loaded.effective.banner() {
        tracing::info!(target: "boot", "{line}");
    }
    for note in &loaded.notes {
        tracing::info!(target: "boot", "{note}");
    }
    metrics::gauge!("queen_config_warnings").set(loaded.warnings.len() as f64);
    for warning in &loaded.warnings {
        tracing::warn!(target: "boot", "{warning}");
    }
    Ok(Some(loaded))
}

/// What `GET /api/v1/system/config` shows.
pub(crate) fn shown(loaded: &Loaded) -> ShownConfig {
    ShownConfig { settings: loaded.effective.print(Format::Json), warnings: loaded.warnings.clone() }
}

/// Plain text for people, and one event per problem for whoever collects the log.
fn report(errors: &ConfigErrors) {
    if init_tracing(&LogOptions::default()).is_ok() {
        for problem in &errors.problems {
            tracing::error!(
                target: "boot", name = problem.name, given = problem.given, source = problem.source,
                "configuration: {}", problem.text
            );
        }
    }
    eprintln!("{errors}");
}

/// `config check`
pub(crate) fn check(file: ConfigFile) -> anyhow::Result<ExitCode> {
    let outcome = queen_config::load(&Sources::from_process(file.0));
    writeln!(std::io::stdout().lock(), "{}", check_text(&outcome))?;
    Ok(if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// `config print`
pub(crate) fn print(file: ConfigFile, format: Format) -> anyhow::Result<ExitCode> {
    match queen_config::load(&Sources::from_process(file.0)) {
        Ok(loaded) => {
            writeln!(std::io::stdout().lock(), "{}", loaded.effective.print(format).trim_end())?;
            Ok(ExitCode::SUCCESS)
        }
        Err(errors) => {
            eprintln!("{errors}");
            Ok(ExitCode::FAILURE)
        }
    }
}
