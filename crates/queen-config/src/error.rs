//! The report of what is wrong with a configuration.

use std::fmt;

/// Where a problem was found; problems are listed in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// An environment variable, or a file that one names.
    Environment,
    /// The configuration file.
    File,
    /// Values that do not go together.
    Together,
}

/// One thing that is wrong. The fields are those of the event that a binary logs beside the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it was found.
    pub layer: Layer,
    /// The name as the operator wrote it: an environment name or a key.
    pub name: String,
    /// The value given, quoted; a secret is only counted.
    pub given: String,
    /// `environment`, or file and line.
    pub source: String,
    /// What is wrong and what is allowed.
    pub text: String,
    /// The other spelling: the key of an environment name and the reverse.
    pub other: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if !self.given.is_empty() {
            // An assignment looks as it does where it was written.
            f.write_str(if self.layer == Layer::File { " = " } else { "=" })?;
            f.write_str(&self.given)?;
        }
        write!(f, " ({}): {}", self.source, self.text)?;
        match &self.other {
            Some(other) => write!(f, "   [{other}]"),
            None => Ok(()),
        }
    }
}

/// Everything that is wrong, and what there was to warn about. Displays as the report for stderr.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors {
    /// By layer, then by name; at least one.
    pub problems: Vec<Problem>,
    /// Warnings of the same pass.
    pub warnings: Vec<String>,
}

impl ConfigErrors {
    pub(crate) fn new(mut problems: Vec<Problem>, warnings: Vec<String>) -> ConfigErrors {
        problems.sort_by(|a, b| (a.layer, &a.name).cmp(&(b.layer, &b.name)));
        ConfigErrors { problems, warnings }
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = match self.problems.len() {
            1 => "1 problem".to_owned(),
            n => format!("{n} problems"),
        };
        writeln!(f, "configuration: {count}, not starting")?;
        for problem in &self.problems {
            writeln!(f, "  {problem}")?;
        }
        write!(f, "{count}; `queen-server config print` shows the effective configuration")
    }
}

impl std::error::Error for ConfigErrors {}
