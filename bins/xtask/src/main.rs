//! Repository tasks: `cargo xtask <command>`.
#![allow(clippy::print_stdout, reason = "a task talks to the person or the log that called it")]

mod ci;
mod cluster;
mod conformance;
mod layers;
mod order_run;
mod outage_run;
mod repo;
mod soak;
mod step;
mod test;
mod tidy;

use std::process::ExitCode;

/// A task: its name, what it does, and the function that does it with the arguments after the name.
struct Command {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> anyhow::Result<ExitCode>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "test",
        about: "all tests on one private PostgreSQL: [--profile ci] [filters]",
        run: test::run,
    },
    Command { name: "layers", about: "which crate may use what", run: layers::run },
    Command { name: "tidy", about: "the repository's own rules", run: tidy::run },
    Command {
        name: "conformance",
        about: "the HTTP suite against a broker: [--url URL | --release] [pytest arguments]",
        run: conformance::run,
    },
    Command {
        name: "order-run",
        about: "order and completeness under load: [--messages N] [--partitions N] [--clients N] [--consumers N] \
                [--producers N] [--batch N] [--groups N] [--url URL] [--sabotage lost|duplicate|swap]",
        run: order_run::run,
    },
    Command {
        name: "soak",
        about: "long runs by name, which CI runs for seconds only: [--list] [--seconds N] NAME... | all",
        run: soak::run,
    },
    Command {
        name: "outage-run",
        about: "PostgreSQL killed and stopped at random under load, nothing accepted is lost: [--seconds N] \
                [--producers N] [--partitions N] [--seed N] [--binary PATH]",
        run: outage_run::run,
    },
    Command { name: "ci", about: "everything that .ci/run runs", run: ci::run },
];

/// The task of that name.
fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // A consumer process of the order run, started by this program itself.
    if let Some((order_run::CLIENT, rest)) = arguments.split_first().map(|(name, rest)| (name.as_str(), rest))
    {
        return order_run::client(rest);
    }
    let Some(command) = arguments.first().and_then(|name| find(name)) else {
        println!("cargo xtask <command>\n");
        for command in COMMANDS {
            println!("  {:<12} {}", command.name, command.about);
        }
        return if arguments.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) };
    };
    match (command.run)(&arguments[1..]) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask {}: {error:#}", command.name);
            ExitCode::FAILURE
        }
    }
}
