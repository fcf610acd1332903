//! `cargo xtask test`: every test of the workspace, on one private PostgreSQL.

use std::process::{Command, ExitCode};

use anyhow::{Context, bail};

use crate::cluster::TaskCluster;
use crate::{repo, step};

#[derive(Debug, Default, PartialEq, Eq)]
struct Arguments {
    profile: Option<String>,
    /// Passed on to the test runner.
    rest: Vec<String>,
}

/// Runs the tests with nextest if it is installed, else with cargo's own runner; then the doctests, unless the
/// arguments choose tests.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let arguments = parse(arguments)?;
    let cluster = TaskCluster::start()?;
    let place = format!("host=127.0.0.1 port={} user=postgres", cluster.port());

    let nextest = has_nextest();
    let tests = step::program("tests", runner(&arguments, nextest).env("QUEEN_TEST_PG", &place));
    let doctests = if arguments.rest.is_empty() { doctests(&place) } else { Ok(()) };
    drop(cluster);
    tests.and(doctests)?;
    Ok(ExitCode::SUCCESS)
}

fn runner(arguments: &Arguments, nextest: bool) -> Command {
    let mut command = repo::cargo();
    if nextest {
        command.args(["nextest", "run"]);
        if let Some(profile) = &arguments.profile {
            command.args(["--profile", profile]);
        }
    } else {
        command.args(["test", "--lib", "--bins", "--tests", "--no-fail-fast"]);
    }
    if !arguments.rest.iter().any(|argument| argument.starts_with("-p") || argument.starts_with("--package"))
    {
        command.arg("--workspace");
    }
    command.args(&arguments.rest);
    command
}

/// Says in one line that they pass, and shows everything if they do not.
fn doctests(place: &str) -> anyhow::Result<()> {
    let mut doc = repo::cargo();
    let said =
        doc.args(["test", "--doc", "--workspace", "--no-fail-fast"]).env("QUEEN_TEST_PG", place).output()?;
    let text = String::from_utf8_lossy(&said.stdout);
    if said.status.success() {
        println!("doctests: {} passed", passed(&text));
        return Ok(());
    }
    println!("{text}{}", String::from_utf8_lossy(&said.stderr));
    bail!("doctests failed")
}

/// The sum over the lines `test result: ok. 3 passed; ...`.
fn passed(output: &str) -> u32 {
    let counts =
        output.lines().filter_map(|line| line.strip_prefix("test result: ok. ")?.split_once(" passed"));
    counts.filter_map(|(count, _)| count.parse::<u32>().ok()).sum()
}

fn has_nextest() -> bool {
    repo::cargo().args(["nextest", "--version"]).output().is_ok_and(|said| said.status.success())
}

fn parse(arguments: &[String]) -> anyhow::Result<Arguments> {
    let mut parsed = Arguments::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--profile" {
            let profile = arguments.next().context("--profile needs a name")?;
            if !["ci", "default"].contains(&profile.as_str()) {
                bail!("there is no profile {profile}; there are default and ci");
            }
            parsed.profile = Some(profile.clone());
        } else {
            parsed.rest.push(argument.clone());
        }
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_profile_is_taken_out_and_the_rest_goes_on() {
        let parsed = parse(&words("--profile ci -p queen-pg deadline")).unwrap();
        assert_eq!(parsed.profile.as_deref(), Some("ci"));
        assert_eq!(parsed.rest, words("-p queen-pg deadline"));
        assert_eq!(parse(&[]).unwrap(), Arguments::default());
        parse(&words("--profile")).unwrap_err();
        parse(&words("--profile soap")).unwrap_err();
    }

    #[test]
    fn cargos_own_runner_leaves_benches_and_doctests_out() {
        let arguments = parse(&words("--profile ci some_test")).unwrap();
        let line = |nextest| format!("{:?}", runner(&arguments, nextest));
        assert!(line(true).contains(r#""nextest" "run" "--profile" "ci" "--workspace" "some_test""#));
        assert!(line(false).contains(r#""--lib" "--bins" "--tests""#));
        assert!(!line(false).contains("--profile"));
    }

    #[test]
    fn a_named_package_takes_the_place_of_the_workspace() {
        for rest in ["-p queen-pg", "--package queen-pg", "--package=queen-pg"] {
            let line = format!("{:?}", runner(&parse(&words(rest)).unwrap(), true));
            assert!(!line.contains("--workspace"), "{line}");
        }
    }

    #[test]
    fn results_of_all_crates_are_added() {
        let text = "test result: ok. 3 passed; 0 failed\nx\ntest result: ok. 12 passed; 0 failed\n";
        assert_eq!(passed(text), 15);
    }
}
