//! `cargo xtask conformance`: the HTTP suite against a broker on a private PostgreSQL.

pub(crate) mod broker;
pub(crate) mod left_out;
mod python;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};

use crate::cluster::TaskCluster;
use crate::{repo, step};
use broker::Broker;

#[derive(Debug, Default, PartialEq, Eq)]
struct Arguments {
    /// A broker that already runs.
    url: Option<String>,
    release: bool,
    /// Passed on to pytest.
    rest: Vec<String>,
}

/// Builds and starts the broker unless one is named, runs the suite in one process, and stops everything.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let arguments = parse(arguments)?;
    let list = std::fs::read_to_string(repo::root().join(left_out::PATH)).context("read left-out.txt")?;
    left_out::check(&list).context("read left-out.txt")?;
    let python = python::prepare()?;
    if let Some(url) = &arguments.url {
        return pytest(&python, url, &arguments.rest);
    }
    let binary = build(arguments.release)?;
    let cluster = TaskCluster::start()?;
    let broker = Broker::start(&binary, cluster.port())?;
    let outcome = pytest(&python, &broker.url(), &arguments.rest);
    if !matches!(outcome, Ok(ExitCode::SUCCESS)) {
        println!("the broker's last words ({}):\n{}", broker.log().display(), broker.last_words());
    }
    outcome
}

pub(crate) fn build(release: bool) -> anyhow::Result<PathBuf> {
    let mut cargo = repo::cargo();
    cargo.args(["build", "--package", "queen-server"]);
    if release {
        cargo.arg("--release");
    }
    step::program("cargo build", &mut cargo)?;
    Ok(repo::target().join(if release { "release" } else { "debug" }).join("queen-server"))
}

fn pytest(python: &Path, url: &str, rest: &[String]) -> anyhow::Result<ExitCode> {
    let plugin = repo::target().join("conformance");
    std::fs::create_dir_all(&plugin).context("make a directory for the plugin")?;
    std::fs::write(plugin.join("queen_left_out.py"), include_str!("left_out.py"))
        .context("write the plugin")?;
    let mut command = std::process::Command::new(python);
    command
        .args(["-m", "pytest", "-p", "queen_left_out", "-p", "no:cacheprovider"])
        .args(rest)
        .current_dir(repo::root().join("tests/conformance"))
        .env("PYTHONPATH", plugin)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("QUEEN_URL", url)
        .env("QUEEN_LEFT_OUT", repo::root().join(left_out::PATH))
        // A line that matches nothing is a mistake only when everything was collected.
        .env("QUEEN_LEFT_OUT_STRICT", if rest.is_empty() { "1" } else { "0" });
    let status = command.status().context("start pytest")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn parse(arguments: &[String]) -> anyhow::Result<Arguments> {
    let mut parsed = Arguments::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--url" => parsed.url = Some(arguments.next().context("--url needs an address")?.clone()),
            "--release" => parsed.release = true,
            _ => parsed.rest.push(argument.clone()),
        }
    }
    if parsed.release && parsed.url.is_some() {
        bail!("--url names a broker that runs; --release chooses one to start");
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str) -> anyhow::Result<Arguments> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_not_ours_goes_to_pytest() {
        let parsed = check("--release test_push.py -x").unwrap();
        assert!(parsed.release && parsed.rest == ["test_push.py", "-x"]);
        assert_eq!(check("--url http://h:1").unwrap().url.as_deref(), Some("http://h:1"));
        check("--url").unwrap_err();
        check("--release --url http://h:1").unwrap_err();
    }
}
