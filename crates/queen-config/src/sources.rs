//! Where a configuration is read from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What [`load`](crate::load) reads. A plain value: tests and hosts fill it without touching their own environment.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The environment, by name.
    pub env: BTreeMap<String, String>,
    /// Names whose value is not Unicode; such a value cannot be read as anything.
    pub not_unicode: BTreeSet<String>,
    /// The file that the command line names. It has to exist.
    pub config_file: Option<PathBuf>,
    /// The file that is read when neither the command line nor `QUEEN_CONFIG_FILE` names one. It may be missing.
    pub fallback_file: Option<PathBuf>,
}

impl Sources {
    /// The path of the configuration file of an installed broker.
    pub const SYSTEM_FILE: &'static str = "/etc/queen/queen.toml";

    /// The environment of this process, the file that the command line names, else the system's file.
    pub fn from_process(config_file: Option<PathBuf>) -> Sources {
        let mut sources = Sources {
            config_file,
            fallback_file: Some(PathBuf::from(Self::SYSTEM_FILE)),
            ..Sources::default()
        };
        for (name, value) in std::env::vars_os() {
            let Ok(name) = name.into_string() else { continue };
            match value.into_string() {
                Ok(value) => {
                    sources.env.insert(name, value);
                }
                Err(_) => {
                    sources.not_unicode.insert(name);
                }
            }
        }
        sources
    }

    /// Only these variables; no file.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Sources {
        let env = pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Sources { env, ..Sources::default() }
    }
}
