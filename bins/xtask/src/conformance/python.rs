//! A Python environment of its own for the suite, made once and kept while its requirements stay the same.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};

use crate::{repo, step};

/// The interpreter of an environment that has the suite's requirements.
pub(crate) fn prepare() -> anyhow::Result<PathBuf> {
    let requirements = repo::root().join("tests/conformance/requirements.txt");
    let wanted = std::fs::read_to_string(&requirements).context("read requirements.txt")?;
    let venv = repo::target().join("conformance-venv");
    let python = venv.join("bin/python");
    let stamp = venv.join("requirements-installed.txt");
    let installed = std::fs::read_to_string(&stamp).ok();
    if python.exists() && installed.as_ref() == Some(&wanted) {
        return Ok(python);
    }

    let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv).status();
    let made =
        made.context("start python3; install it (Debian or Ubuntu: apt-get install python3 python3-venv)")?;
    if !made.success() {
        bail!("python3 -m venv failed; on Debian or Ubuntu: apt-get install python3-venv");
    }
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]).arg(&requirements);
    step::program("pip install", &mut pip)?;
    std::fs::write(&stamp, wanted).context("mark the environment as complete")?;
    Ok(python)
}
