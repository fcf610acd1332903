//! `tests/conformance/left-out.txt`: cases whose feature belongs to later work. `left_out.py` applies it.

use anyhow::{Context, bail, ensure};

/// The list, relative to the top of the repository.
pub(crate) const PATH: &str = "tests/conformance/left-out.txt";

/// Checks that each line is `pattern  # issue N: reason` or `pattern  # plan NN: reason`; empty lines and lines
/// that begin with `#` are comments.
pub(crate) fn check(text: &str) -> anyhow::Result<()> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim_end()));
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        check_line(line).with_context(|| format!("line {number}"))?;
    }
    Ok(())
}

fn check_line(line: &str) -> anyhow::Result<()> {
    let (pattern, comment) =
        line.split_once("  # ").context("says neither issue nor reason (`  # issue N: reason`)")?;
    let (owner, reason) = comment.split_once(": ").context("gives no reason after `issue N: `")?;
    let (kind, number) = owner.split_once(' ').context("names no issue")?;
    if !["issue", "plan"].contains(&kind) || number.parse::<u32>().is_err() {
        bail!("names neither an issue nor a plan: {owner}");
    }
    ensure!(!reason.trim().is_empty(), "gives no reason");
    ensure!(pattern.starts_with("test_") && pattern.contains(".py"), "{pattern} names no test file");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_a_pattern_an_owner_and_a_reason() {
        let text =
            "# heading\n\ntest_kv.py  # plan 06: the store\ntest_a.py::test_b[x y-*]  # issue 5: groups\n";
        check(text).unwrap();
    }

    #[test]
    fn a_line_without_an_issue_is_refused_with_its_number() {
        for bad in [
            "test_kv.py",
            "test_kv.py  # later",
            "test_kv.py  # some day: x",
            "test_kv.py  # issue five: x",
            "test_kv.py  # issue 5: ",
            "kv  # issue 5: x",
        ] {
            let error = format!("{:#}", check(&format!("# first\n{bad}")).unwrap_err());
            assert!(error.starts_with("line 2"), "{error}");
        }
    }
}
