//! `cargo xtask tidy`: the repository's rules about itself.

mod left_out;
mod marks;
mod size;

use std::process::ExitCode;

use anyhow::bail;

use crate::repo::{self, SourceFile};

/// A rule looks at one file and says what is wrong with it.
type Rule = fn(&SourceFile) -> Vec<String>;

const RULES: [Rule; 5] =
    [size::main_is_thin, size::files_are_short, marks::left_behind, marks::machine_paths, left_out::check];

/// Copies that are kept as they came.
const COPIES: [&str; 2] = ["tests/conformance/", "benches/load/"];

/// Checks every file of the repository.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(argument) = arguments.first() {
        bail!("tidy takes no arguments, got {argument}");
    }
    let files = repo::files()?;
    let mut problems: Vec<String> = files.iter().flat_map(check).collect();
    problems.extend(size::stale_ratchets(&files));
    Ok(repo::report("tidy", &problems))
}

fn check(file: &SourceFile) -> Vec<String> {
    RULES.iter().flat_map(|rule| rule(file)).collect()
}

fn is_copy(file: &SourceFile) -> bool {
    COPIES.iter().any(|copy| file.path.starts_with(copy)) && !file.path.ends_with("left-out.txt")
}
