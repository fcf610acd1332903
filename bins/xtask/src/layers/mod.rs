//! `cargo xtask layers`: which crate may use what, read from the manifests.

mod environment;
mod manifest;
mod rules;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};

use crate::repo;

/// Checks every manifest of the workspace, and the sources for who reads the environment.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(argument) = arguments.first() {
        bail!("layers takes no arguments, got {argument}");
    }
    let mut problems = Vec::new();
    for path in manifests()? {
        let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let manifest = manifest::parse(&text).with_context(|| format!("read {}", path.display()))?;
        problems.extend(rules::check(&manifest));
    }
    for file in repo::files()? {
        problems.extend(environment::check(&file.path, &file.text));
    }
    Ok(repo::report("layers", &problems))
}

/// The manifests of the workspace's members.
fn manifests() -> anyhow::Result<Vec<PathBuf>> {
    let root = repo::root();
    let mut found = Vec::new();
    for parent in ["crates", "bins", "tests", "."] {
        let parent = root.join(parent);
        let entries = parent.read_dir().with_context(|| format!("read {}", parent.display()))?;
        found.extend(entries.filter_map(Result::ok).map(|entry| entry.path().join("Cargo.toml")));
    }
    found.retain(|path| path.is_file());
    found.sort();
    Ok(found)
}
