//! The files of the repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// The top of the repository.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).unwrap_or(manifest).to_path_buf()
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// The cargo that runs this task.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// A file that git knows or would add, with its text; binary files are left out.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// Relative to the top, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// All files of the repository, in the order of their paths.
pub(crate) fn files() -> anyhow::Result<Vec<SourceFile>> {
    let listed = Command::new("git")
        // A build server may run this as another user than the one that cloned.
        .args(["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .context("run git ls-files")?;
    ensure!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let mut paths: Vec<String> =
        String::from_utf8(listed.stdout)?.split_terminator('\0').map(str::to_owned).collect();
    paths.sort();
    paths.dedup();
    let read = |path: String| {
        let text = std::fs::read_to_string(root().join(&path)).ok()?;
        Some(SourceFile { path, text })
    };
    Ok(paths.into_iter().filter_map(read).collect())
}

/// Prints what is wrong and answers with the exit code.
pub(crate) fn report(what: &str, problems: &[String]) -> std::process::ExitCode {
    for problem in problems {
        println!("{what}: {problem}");
    }
    if problems.is_empty() {
        println!("{what}: nothing to complain about");
        std::process::ExitCode::SUCCESS
    } else {
        println!("{what}: {} problems", problems.len());
        std::process::ExitCode::FAILURE
    }
}
