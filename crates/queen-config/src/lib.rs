//! Environment and file to typed options: sources, ranges, masking, and a report of everything that is wrong.
//!
//! [`load`] is a function of its [`Sources`]: it reads the files that they name, and nothing else of the process. It
//! never prints and never exits. One registry of variables feeds parsing, the boot banner, `config schema` and
//! `docs/configuration.md`.

mod check;
mod config;
mod derive;
mod docs;
mod effective;
mod env_layer;
mod error;
mod file_layer;
mod findings;
mod jobs;
mod merge;
mod names;
mod parse;
pub mod registry;
mod secret_file;
mod sources;
mod together;
mod value;

pub use config::Config;
pub use docs::{docs_markdown, schema_text};
pub use effective::{Effective, Format, Setting};
pub use error::{ConfigErrors, Layer, Problem};
pub use findings::Origin;
pub use sources::Sources;
pub use value::Value;

use config::Unusable;
use findings::Findings;
use merge::Merged;

/// A configuration that can be started with.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The options.
    pub config: Config,
    /// What an operator should know; log them last, after the banner.
    pub warnings: Vec<String>,
    /// Remarks that are no warnings, for instance the use of an old name.
    pub notes: Vec<String>,
    /// Every variable with its value and its origin.
    pub effective: Effective,
}

/// Reads all layers in one pass.
///
/// # Errors
/// [`ConfigErrors`] lists every problem of every layer; its text is the report for stderr.
pub fn load(sources: &Sources) -> Result<Loaded, ConfigErrors> {
    let mut findings = Findings::default();
    let document = file_layer::read(sources, &mut findings);
    let env = env_layer::read(sources, &mut findings);
    let mut merged = Merged::of(document.values, env);
    derive::fill(&mut merged);
    together::check(&merged, document.path.as_deref(), &mut findings);

    let config = match Config::of(&merged) {
        Ok(config) => Some(config),
        Err(unusable) => {
            findings.problems.push(unusable_problem(unusable, &merged));
            None
        }
    };
    match config {
        Some(config) if findings.problems.is_empty() => Ok(Loaded {
            config,
            warnings: findings.warnings,
            notes: findings.notes,
            effective: Effective::of(&merged),
        }),
        _ => Err(ConfigErrors::new(findings.problems, findings.warnings)),
    }
}

fn unusable_problem(unusable: Unusable, merged: &Merged) -> Problem {
    let (name, given, text) = match unusable {
        Unusable::Bind(error) => (
            "QUEEN_BIND_ADDR",
            format!("{:?}", merged.text("QUEEN_BIND_ADDR").unwrap_or_default()),
            format!("does not resolve: {error}; allowed an address of this machine, e.g. 0.0.0.0"),
        ),
        Unusable::Shape(error) => {
            ("configuration", String::new(), format!("the registry is at fault: {error}"))
        }
    };
    Problem {
        layer: Layer::Together,
        name: name.to_owned(),
        given,
        source: merged.origin(name).to_string(),
        text,
        other: None,
    }
}

/// The text of `queen-server config check`: the report, or one line and the warnings.
pub fn check_text(outcome: &Result<Loaded, ConfigErrors>) -> String {
    let (mut text, warnings) = match outcome {
        Ok(loaded) => ("configuration: no problems".to_owned(), &loaded.warnings),
        Err(errors) => (errors.to_string(), &errors.warnings),
    };
    for warning in warnings {
        text.push_str("\nwarning: ");
        text.push_str(warning);
    }
    text
}
