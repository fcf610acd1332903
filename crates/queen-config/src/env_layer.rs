//! The environment: aliases, secrets in files, service links, unknown names.

use crate::error::Layer;
use crate::findings::{Findings, Origin, Values, Written};
use crate::names;
use crate::parse;
use crate::registry::{AliasKind, DEAD_NAMES, Empty, Variable, variables};
use crate::secret_file;
use crate::sources::Sources;

/// Reads every variable that the environment sets.
pub(crate) fn read(sources: &Sources, findings: &mut Findings) -> Values {
    let mut values = Values::new();
    for variable in variables() {
        read_one(variable, sources, findings, &mut values);
    }
    for (name, text) in DEAD_NAMES {
        if sources.env.get(*name).is_some_and(|value| !value.trim().is_empty()) {
            findings.warnings.push(format!("{name} is set: {text}"));
        }
    }
    names::report_unknown(sources, findings);
    values
}

fn read_one(variable: &'static Variable, sources: &Sources, findings: &mut Findings, values: &mut Values) {
    let written = |name, raw| Written {
        layer: Layer::Environment,
        name,
        raw,
        source: "environment",
        secret: variable.secret,
        other: variable.key,
    };
    let mut chosen: Option<(&str, &str)> = None;
    for (name, kind) in names_by_precedence(variable) {
        if sources.not_unicode.contains(name) {
            findings.problems.push(written(name, "").problem("not Unicode text"));
            return;
        }
        let Some(raw) = sources.env.get(name).map(String::as_str) else { continue };
        if raw.trim().is_empty() && variable.empty == Empty::Unset {
            continue;
        }
        if names::is_service_link(name, raw) {
            findings.warnings.push(written(name, raw).warning(
                "looks like a Kubernetes service link; set enableServiceLinks: false or make the Service headless; \
                 ignored",
            ));
            continue;
        }
        match chosen {
            None => {
                if kind == Some(AliasKind::Legacy) {
                    findings.notes.push(format!("{name} is an old name of {}", variable.name));
                }
                chosen = Some((name, raw));
            }
            Some((winner, value)) => {
                if value != raw && kind != Some(AliasKind::Platform) {
                    findings
                        .warnings
                        .push(format!("{winner} and {name} are both set and differ; {winner} is in force"));
                }
            }
        }
    }
    if let Some(file) = secret_file::named_by_environment(variable, sources) {
        let spelling = secret_file::key(variable);
        let place = Written { other: Some(&spelling), secret: false, ..written(&file.name, &file.path) };
        if let Some((name, _)) = chosen {
            findings.problems.push(place.problem(format!("{name} is set too; allowed only one of the two")));
            return;
        }
        let origin = Origin::Environment(file.name.clone());
        secret_file::read(variable, &place, origin, findings, values);
        return;
    }
    if let Some((name, raw)) = chosen {
        let outcome = parse::from_text(variable, raw);
        let origin = Origin::Environment(name.to_owned());
        findings.take(variable, &written(name, raw), origin, outcome, values);
    }
}

/// Every environment name of a variable, the winner first; `None` marks its own name.
fn names_by_precedence(
    variable: &'static Variable,
) -> impl Iterator<Item = (&'static str, Option<AliasKind>)> {
    let aliases = |wins: bool| {
        let matching = move |kind: AliasKind| (kind == AliasKind::Wins) == wins;
        variable.aliases.iter().filter(move |a| matching(a.kind)).map(|a| (a.name, Some(a.kind)))
    };
    aliases(true).chain(std::iter::once((variable.name, None))).chain(aliases(false))
}
