//! Secrets that stand in a file of their own.

use std::path::Path;

use crate::findings::{Findings, Origin, Values, Written};
use crate::parse;
use crate::registry::Variable;
use crate::sources::Sources;

/// A `<NAME>_FILE` that is set.
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) path: String,
}

/// The key in the configuration file that names the file: `postgres.password_file`.
pub(crate) fn key(variable: &Variable) -> String {
    format!("{}_file", variable.key.unwrap_or_default())
}

/// The environment's `<NAME>_FILE` of a variable, unless it is empty.
pub(crate) fn named_by_environment(variable: &Variable, sources: &Sources) -> Option<Named> {
    if !variable.file {
        return None;
    }
    let name = format!("{}_FILE", variable.name);
    let path = sources.env.get(&name).map(|path| path.trim()).filter(|path| !path.is_empty())?;
    Some(Named { path: path.to_owned(), name })
}

/// Reads the secret from the file that `place` names; one line break at its end is not part of it.
pub(crate) fn read(
    variable: &'static Variable,
    place: &Written<'_>,
    origin: Origin,
    findings: &mut Findings,
    values: &mut Values,
) {
    let text = match std::fs::read_to_string(Path::new(place.raw)) {
        Ok(text) => text,
        Err(error) => {
            findings
                .problems
                .push(place.problem(format!("cannot be read: {error}; allowed the path of a file")));
            return;
        }
    };
    let secret =
        text.strip_suffix('\n').map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text));
    let outcome = parse::from_text(variable, secret);
    findings.take(variable, place, origin, outcome, values);
}
