//! `cargo xtask soak`: the long runs, by name. Each is something that CI runs too, for seconds there; here it goes on.

use std::process::ExitCode;

use anyhow::{Context, bail};

use crate::cluster::TaskCluster;
use crate::{repo, step};

/// How long one goes on unless told otherwise.
const SECONDS: u64 = 600;

/// A long run.
#[derive(Debug)]
struct Soak {
    name: &'static str,
    about: &'static str,
    run: Run,
}

/// What a long run runs.
#[derive(Debug)]
enum Run {
    /// Tests of the package `queen-tests`: the binary, and a part of their names.
    Tests(&'static str, &'static str),
    /// Another task of this program, which ends by itself.
    Task(&'static str),
}

const SOAKS: &[Soak] = &[
    Soak {
        name: "model",
        about: "random operations on two brokers against the reference model",
        run: Run::Tests("model", ""),
    },
    Soak {
        name: "mixed",
        about: "everything at once on few partitions: no deadlock, no answer that makes no sense",
        run: Run::Tests("parallel_mixed", "i31_"),
    },
    Soak {
        name: "groups",
        about: "seeks, deletions and replays among pushes, pops and acks: no deadlock",
        run: Run::Tests("operator", "i31_"),
    },
    Soak {
        name: "delivery",
        about: "everything reaches every group, in order, once after acks, while it is pushed",
        run: Run::Tests("parallel_mixed", "i12_i13_i15_"),
    },
    Soak {
        name: "leases",
        about: "no partition is leased twice to a group, and a lease that is gone does nothing",
        run: Run::Tests("parallel_pop", ""),
    },
    Soak {
        name: "handoff",
        about: "a partition goes from worker to worker and from broker to broker",
        run: Run::Tests("concurrency_handoff", ""),
    },
    Soak {
        name: "redelivery",
        about: "redeliveries begin behind the cursor, and what is done never returns",
        run: Run::Tests("invariants_delivery", ""),
    },
    Soak {
        name: "log",
        about: "offsets without hole and overlap, through rollbacks and cut connections",
        run: Run::Tests("invariants_log", ""),
    },
    Soak {
        name: "dedup",
        about: "an id is stored once inside its window",
        run: Run::Tests("invariants_dedup", ""),
    },
    Soak {
        name: "cursor",
        about: "cursors never go back and never skip",
        run: Run::Tests("invariants_cursor", ""),
    },
    Soak {
        name: "decisions",
        about: "random situations of acks against the table",
        run: Run::Tests("invariants_ack", ""),
    },
    Soak {
        name: "damage",
        about: "rows that were damaged are passed, and their neighbours are not",
        run: Run::Tests("invariants_damage", ""),
    },
    Soak {
        name: "order",
        about: "the whole order run; its size is its own, see `cargo xtask order-run`",
        run: Run::Task("order-run"),
    },
    Soak {
        name: "outage",
        about: "PostgreSQL comes and goes under load; its size is its own, see `cargo xtask outage-run`",
        run: Run::Task("outage-run"),
    },
];

#[derive(Debug, PartialEq, Eq)]
struct Arguments {
    list: bool,
    seconds: u64,
    names: Vec<String>,
}

/// Runs the long runs that are named, one after the other, on one cluster.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let arguments = parse(arguments)?;
    if arguments.list || arguments.names.is_empty() {
        println!("cargo xtask soak [--list] [--seconds N] NAME... | all\n");
        for soak in SOAKS {
            println!("  {:<12} {}", soak.name, soak.about);
        }
        println!("\n{SECONDS} s each unless --seconds says otherwise; QUEEN_TEST_SEED=N repeats one seed");
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = choose(&arguments.names)?;
    let mut cluster = None;
    let mut failed = Vec::new();
    for soak in chosen {
        let outcome = step::timed(soak.name, || match soak.run {
            Run::Task(task) => step::task(task, &[]),
            Run::Tests(binary, filter) => {
                let cluster = match &mut cluster {
                    Some(cluster) => cluster,
                    none => none.insert(TaskCluster::start()?),
                };
                tests(binary, filter, arguments.seconds, cluster)
            }
        });
        if let Err(error) = outcome {
            println!("{error:#}");
            failed.push(soak.name);
        }
    }
    if failed.is_empty() { Ok(ExitCode::SUCCESS) } else { bail!("failed: {}", failed.join(", ")) }
}

/// On cargo's own runner, which sets no limit to a test.
fn tests(binary: &str, filter: &str, seconds: u64, cluster: &TaskCluster) -> anyhow::Result<()> {
    let place = format!("host=127.0.0.1 port={} user=postgres", cluster.port());
    let mut cargo = repo::cargo();
    cargo
        .args(["test", "--release", "-p", "queen-tests", "--test", binary, "--", filter, "--nocapture"])
        .env("QUEEN_TEST_PG", place)
        .env("QUEEN_TEST_SECONDS", seconds.to_string());
    step::program(binary, &mut cargo)
}

fn parse(arguments: &[String]) -> anyhow::Result<Arguments> {
    let mut parsed = Arguments { list: false, seconds: SECONDS, names: Vec::new() };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--list" => parsed.list = true,
            "--seconds" => {
                let text = rest.next().context("--seconds needs a number")?;
                parsed.seconds =
                    text.parse().ok().filter(|seconds| *seconds > 0).with_context(|| {
                        format!("--seconds {text:?} is not a number of seconds, at least 1")
                    })?;
            }
            name if name.starts_with('-') => bail!("soak knows --list and --seconds, not {name}"),
            name => parsed.names.push(name.to_owned()),
        }
    }
    Ok(parsed)
}

fn choose(names: &[String]) -> anyhow::Result<Vec<&'static Soak>> {
    if names == ["all"] {
        return Ok(SOAKS.iter().collect());
    }
    let of = |name: &String| {
        SOAKS.iter().find(|soak| soak.name == name).with_context(|| {
            let known: Vec<_> = SOAKS.iter().map(|soak| soak.name).collect();
            format!("there is no soak {name:?}, but {}", known.join(", "))
        })
    };
    names.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn arguments() {
        let parsed = parse(&words("--seconds 3600 model log")).unwrap();
        assert_eq!(parsed, Arguments { list: false, seconds: 3600, names: words("model log") });
        assert!(parse(&words("--list")).unwrap().list);
        assert!(parse(&words("--seconds 0")).unwrap_err().to_string().contains("\"0\""));
        assert!(parse(&words("--hours 1")).unwrap_err().to_string().contains("--hours"));
        assert!(choose(&words("modle")).unwrap_err().to_string().contains("model"));
        assert_eq!(choose(&words("all")).unwrap().len(), SOAKS.len());
    }

    /// A name that runs nothing would pass for ever.
    /// The files of a test binary: one of its name, a folder of its name, or both.
    fn sources(binary: &str) -> String {
        let tests = repo::root().join("tests/tests");
        let mut text = std::fs::read_to_string(tests.join(format!("{binary}.rs"))).unwrap_or_default();
        for file in std::fs::read_dir(tests.join(binary)).into_iter().flatten() {
            text += &std::fs::read_to_string(file.unwrap().path()).unwrap();
        }
        text
    }

    #[test]
    fn every_soak_runs_something() {
        for soak in SOAKS {
            match soak.run {
                Run::Task(task) => assert!(crate::find(task).is_some(), "{task}"),
                Run::Tests(binary, filter) => {
                    let text = sources(binary);
                    assert!(text.contains(&format!("fn {filter}")), "{binary} has no test {filter}");
                    let is_timed = text.contains("Runs::of(") || text.contains("SECONDS");
                    assert!(is_timed, "{binary} does not heed QUEEN_TEST_SECONDS");
                }
            }
        }
    }
}
