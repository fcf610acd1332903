//! What one pass over all sources found: values with their origin, problems, warnings.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::{Layer, Problem};
use crate::parse::{Accepted, Refused};
use crate::registry::Variable;
use crate::value::{Value, quoted};

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Compiled in.
    Default,
    /// Computed from other values.
    Derived,
    /// An environment variable; the name is the one that was used.
    Environment(String),
    /// The configuration file, as `path:line`.
    File(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::Derived => f.write_str("derived"),
            Origin::Environment(name) => write!(f, "env {name}"),
            Origin::File(place) => f.write_str(place),
        }
    }
}

/// The values of one layer, by the variable's name.
pub(crate) type Values = BTreeMap<&'static str, (Value, Origin)>;

/// Collected while the layers are read.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) problems: Vec<Problem>,
    pub(crate) warnings: Vec<String>,
    /// Worth a line, not a warning.
    pub(crate) notes: Vec<String>,
}

/// One assignment as it was written.
#[derive(Debug, Clone)]
pub(crate) struct Written<'a> {
    pub(crate) layer: Layer,
    /// Environment name or key.
    pub(crate) name: &'a str,
    /// The value's text, as it was written.
    pub(crate) raw: &'a str,
    /// `environment`, or file and line.
    pub(crate) source: &'a str,
    pub(crate) secret: bool,
    pub(crate) other: Option<&'a str>,
}

impl Written<'_> {
    fn given(&self) -> String {
        match (self.secret, self.layer) {
            (true, _) => format!("<set, {} characters>", self.raw.chars().count()),
            // The file's own spelling has its quotes already.
            (false, Layer::File) => self.raw.lines().next().unwrap_or_default().to_owned(),
            (false, _) => quoted(self.raw),
        }
    }

    pub(crate) fn problem(&self, text: impl Into<String>) -> Problem {
        Problem {
            layer: self.layer,
            name: self.name.to_owned(),
            given: self.given(),
            source: self.source.to_owned(),
            text: text.into(),
            other: self.other.map(str::to_owned),
        }
    }

    /// The same line as a problem's, for a warning.
    pub(crate) fn warning(&self, text: impl Into<String>) -> String {
        self.problem(text).to_string()
    }
}

impl Findings {
    /// Takes the outcome of reading one assignment: a value for `values`, a problem, a warning.
    pub(crate) fn take(
        &mut self,
        variable: &'static Variable,
        written: &Written<'_>,
        origin: Origin,
        outcome: Result<Accepted, Refused>,
        values: &mut Values,
    ) {
        match outcome {
            Ok(accepted) => {
                if let Some(warning) = accepted.warning {
                    self.warnings.push(written.warning(warning));
                }
                if let Some(value) = accepted.value {
                    values.insert(variable.name, (value, origin));
                }
            }
            Err(Refused { reason, allowed }) => {
                let text = if reason.is_empty() { allowed } else { format!("{reason}; {allowed}") };
                self.problems.push(written.problem(text));
            }
        }
    }
}
