//! `cargo xtask ci`: what the build server runs, in the order of what fails soonest.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::bail;

use crate::{repo, step};

/// Runs every check. The cheap ones stop the run at once; of the long ones each runs, so that one run tells all.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(argument) = arguments.first() {
        bail!("ci takes no arguments, got {argument}");
    }
    let start = Instant::now();
    step::timed("format", || cargo(&["fmt", "--all", "--check"]))?;
    step::timed("layers", || step::task("layers", &[]))?;
    step::timed("tidy", || step::task("tidy", &[]))?;
    step::timed("clippy", || cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    step::timed("documentation", documentation)?;

    let mut failed = Vec::new();
    for (name, check) in LONG_CHECKS {
        if let Err(error) = step::timed(name, check) {
            println!("{error:#}");
            failed.push(name);
        }
    }
    println!("\nci: {:.0} s in all", start.elapsed().as_secs_f64());
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    bail!("failed: {}", failed.join(", "))
}

type Check = fn() -> anyhow::Result<()>;

/// The two suites come last, so that the log ends with what they say.
const LONG_CHECKS: [(&str, Check); 4] = [
    ("release build", || cargo(&["build", "--release", "-p", "queen-server"])),
    ("order run", order_run),
    ("tests", || step::task("test", &["--profile", "ci"])),
    ("conformance", || step::task("conformance", &["--release"])),
];

fn cargo(arguments: &[&str]) -> anyhow::Result<()> {
    let name = format!("cargo {}", arguments.first().copied().unwrap_or_default());
    step::program(&name, repo::cargo().args(arguments))
}

fn documentation() -> anyhow::Result<()> {
    let mut doc = repo::cargo();
    step::program(
        "cargo doc",
        doc.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"),
    )
}

fn order_run() -> anyhow::Result<()> {
    if crate::find("order-run").is_none() {
        println!("this tree has no order run");
        return Ok(());
    }
    step::task("order-run", &["--messages", "20000", "--groups", "2"])
}
