//! Running programs as named, timed steps.

use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, bail};

/// Runs a program in the foreground; its failure is an error that names the step.
pub(crate) fn program(name: &str, command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("start {:?} for {name}", command.get_program()))?;
    if status.success() {
        return Ok(());
    }
    bail!("{name} failed ({status})")
}

/// Runs a step under a headline and prints how long it took.
pub(crate) fn timed(name: &str, step: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    println!("\n=== {name}");
    let start = Instant::now();
    let outcome = step();
    let word = if outcome.is_ok() { "ok" } else { "FAILED" };
    println!("--- {name}: {word} in {:.1} s", start.elapsed().as_secs_f64());
    outcome
}

/// The outcome of another task as an error of this one.
pub(crate) fn task(name: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let Some(command) = crate::find(name) else { bail!("there is no task {name}") };
    let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let code = (command.run)(&arguments)?;
    if code == ExitCode::SUCCESS { Ok(()) } else { bail!("{name} failed") }
}
