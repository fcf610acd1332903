//! The registry: one row per variable. Parsing, the boot banner, `config schema` and `docs/configuration.md` all come
//! from these rows.
//!
//! A file per section. A row is written as a chain that begins with the type: name, TOML key, default; then ranges
//! and flags; then what it does.

mod admission;
mod auth;
mod engine;
mod ephemeral;
mod jobs;
mod kv;
mod log;
mod mesh;
mod names;
mod postgres;
mod server;
mod spool;
mod streams;
mod sweeper;
mod tenancy;
mod variable;

pub(crate) use names::{CLI_NAMES, DEAD_NAMES};
pub use variable::{Alias, AliasKind, Check, Default, Effect, Empty, Kind, Variable};

/// Rows that belong together: one block of the banner, one heading of the documentation.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    /// Name of the banner's block.
    pub block: &'static str,
    /// Heading of the documentation.
    pub title: &'static str,
    /// The rows.
    pub variables: &'static [Variable],
}

/// Every variable, by section.
pub const SECTIONS: &[Section] = &[
    Section { block: "server", title: "Server and process", variables: server::VARIABLES },
    Section { block: "postgres", title: "PostgreSQL", variables: postgres::VARIABLES },
    Section { block: "auth", title: "Authentication", variables: auth::VARIABLES },
    Section { block: "sync", title: "Mesh", variables: mesh::VARIABLES },
    Section { block: "engine", title: "Push, ack and pop engine", variables: engine::VARIABLES },
    Section { block: "flow", title: "Admission", variables: admission::VARIABLES },
    Section { block: "jobs", title: "Background jobs", variables: jobs::VARIABLES },
    Section { block: "file_buffer", title: "Spool", variables: spool::VARIABLES },
    Section { block: "security", title: "Encryption and tenancy", variables: tenancy::VARIABLES },
    Section { block: "kv_timers", title: "Key-value state and timers", variables: kv::VARIABLES },
    Section { block: "streams", title: "Streams", variables: streams::VARIABLES },
    Section { block: "ephemeral", title: "Ephemeral queues", variables: ephemeral::VARIABLES },
    Section { block: "sweeper", title: "Sweeper", variables: sweeper::VARIABLES },
    Section { block: "logging", title: "Logging, metrics and tracing", variables: log::VARIABLES },
];

/// Every variable.
pub fn variables() -> impl Iterator<Item = &'static Variable> {
    SECTIONS.iter().flat_map(|section| section.variables)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_and_keys_are_unique_and_no_key_is_inside_another() {
        let mut names = BTreeSet::new();
        let mut keys = BTreeSet::new();
        for variable in variables() {
            assert!(names.insert(variable.name), "{}", variable.name);
            for alias in variable.aliases {
                assert!(names.insert(alias.name), "{}", alias.name);
            }
            if let Some(key) = variable.key {
                assert!(keys.insert(key), "{key}");
            }
        }
        for (name, _) in DEAD_NAMES {
            assert!(names.insert(name), "{name}");
        }
        for key in &keys {
            assert!(!keys.iter().any(|other| other.starts_with(&format!("{key}."))), "{key}");
        }
    }

    #[test]
    fn every_row_is_documented_and_only_secrets_have_files() {
        for variable in variables() {
            assert!(variable.doc.ends_with('.'), "{} has no sentence", variable.name);
            assert!(!variable.file || variable.key.is_some(), "{}", variable.name);
            assert!(!variable.secret || variable.file || variable.name == "QUEEN_ENCRYPTION_OLD_KEYS");
        }
    }

    #[test]
    fn defaults_lie_in_their_ranges() {
        for variable in variables() {
            match (variable.kind, variable.default) {
                (Kind::Int { fatal, clamp, .. }, Default::Int(n)) => {
                    assert!(fatal.0 <= n && n <= fatal.1, "{}", variable.name);
                    assert!(clamp.is_none_or(|c| c.0 <= n && n <= c.1), "{}", variable.name);
                }
                (Kind::Float { fatal, clamp_min }, Default::Float(x)) => {
                    assert!(fatal.0 <= x && x <= fatal.1, "{}", variable.name);
                    assert!(clamp_min.is_none_or(|min| min <= x), "{}", variable.name);
                }
                (Kind::Choice(words), Default::Text(word)) => {
                    assert!(words.iter().any(|(w, _)| *w == word), "{}", variable.name);
                }
                (Kind::Bool, Default::Bool(_))
                | (Kind::Text | Kind::Pem(_), Default::Text(_))
                | (Kind::List, Default::List(_))
                | (_, Default::Derived(_) | Default::Unset) => {}
                (kind, default) => panic!("{}: {default:?} for {kind:?}", variable.name),
            }
        }
    }
}
