//! The configuration file.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Layer, Problem};
use crate::findings::{Findings, Origin, Values, Written};
use crate::names;
use crate::parse;
use crate::registry::{Variable, variables};
use crate::secret_file;
use crate::sources::Sources;

/// The file that was read.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub(crate) path: Option<PathBuf>,
    pub(crate) values: Values,
}

/// Reads the configuration file, if there is one.
pub(crate) fn read(sources: &Sources, findings: &mut Findings) -> Document {
    let from_env =
        sources.env.get("QUEEN_CONFIG_FILE").map(|path| path.trim()).filter(|path| !path.is_empty());
    let (path, name) = match (&sources.config_file, from_env, &sources.fallback_file) {
        (Some(path), _, _) => (path.clone(), Some("--config")),
        (None, Some(path), _) => (PathBuf::from(path), Some("QUEEN_CONFIG_FILE")),
        (None, None, Some(path)) => (path.clone(), None),
        (None, None, None) => return Document::default(),
    };
    let text = match (std::fs::read_to_string(&path), name) {
        (Ok(text), _) => text,
        (Err(error), None) if error.kind() == ErrorKind::NotFound => return Document::default(),
        (Err(error), name) => {
            findings.problems.push(Problem {
                layer: Layer::File,
                name: name.unwrap_or("configuration file").to_owned(),
                given: format!("{:?}", path.display().to_string()),
                source: if name == Some("QUEEN_CONFIG_FILE") { "environment" } else { "command line" }
                    .to_owned(),
                text: format!("cannot be read: {error}; allowed the path of a TOML file"),
                other: None,
            });
            return Document::default();
        }
    };
    let values = parse_document(&path, &text, findings);
    Document { path: Some(path), values }
}

fn parse_document(path: &Path, text: &str, findings: &mut Findings) -> Values {
    let lines = Lines { path: path.display().to_string(), text };
    let mut values = Values::new();
    match DeTable::parse(text) {
        Ok(table) => {
            let mut reader = Reader { lines, keys: known_keys(), findings, values: &mut values };
            reader.table("", table.get_ref());
        }
        Err(error) => findings.problems.push(Problem {
            layer: Layer::File,
            name: "TOML".to_owned(),
            given: String::new(),
            source: lines.place(error.span().map_or(0, |span| span.start)),
            text: error.message().replace('\n', "; "),
            other: None,
        }),
    }
    values
}

/// Keys that the file may hold, in alphabetical order.
fn known_keys() -> Vec<String> {
    let mut keys: Vec<String> = variables().filter_map(|v| v.key).map(str::to_owned).collect();
    keys.extend(variables().filter(|v| v.file).map(secret_file::key));
    keys.sort_unstable();
    keys
}

struct Lines<'t> {
    path: String,
    text: &'t str,
}

impl Lines<'_> {
    fn place(&self, offset: usize) -> String {
        let before = self.text.get(..offset).unwrap_or(self.text);
        format!("{}:{}", self.path, before.matches('\n').count() + 1)
    }
}

struct Reader<'t, 'f> {
    lines: Lines<'t>,
    keys: Vec<String>,
    findings: &'f mut Findings,
    values: &'f mut Values,
}

impl Reader<'_, '_> {
    fn table(&mut self, prefix: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let full = if prefix.is_empty() {
                key.get_ref().to_string()
            } else {
                format!("{prefix}.{}", key.get_ref())
            };
            let place = self.lines.place(key.span().start);
            match value.get_ref() {
                DeValue::Table(inner) if self.is_prefix(&full) => self.table(&full, inner),
                _ => self.entry(&full, &place, value),
            }
        }
    }

    fn is_prefix(&self, key: &str) -> bool {
        self.keys.iter().any(|known| known.strip_prefix(key).is_some_and(|rest| rest.starts_with('.')))
    }

    fn entry(&mut self, key: &str, place: &str, value: &Spanned<DeValue<'_>>) {
        let raw = self.lines.text.get(value.span()).unwrap_or_default();
        if let Some(variable) = variables().find(|v| v.key == Some(key)) {
            let written = self.written(variable, key, raw, place, variable.secret);
            let outcome = parse::from_toml(variable, value.get_ref());
            self.refuse_double(variable, &written);
            self.findings.take(variable, &written, Origin::File(place.to_owned()), outcome, self.values);
        } else if let Some(variable) = variables().find(|v| v.file && secret_file::key(v) == key) {
            self.secret_file(variable, key, place, value, raw);
        } else {
            let near = names::nearest(key, &self.keys, 3, '.');
            let text = match near {
                Some(near) => format!("not a known key; did you mean {near}?"),
                None => "not a known key".to_owned(),
            };
            self.findings.problems.push(Problem {
                layer: Layer::File,
                name: key.to_owned(),
                given: String::new(),
                source: place.to_owned(),
                text,
                other: None,
            });
        }
    }

    fn written<'w>(
        &self,
        variable: &'static Variable,
        key: &'w str,
        raw: &'w str,
        place: &'w str,
        secret: bool,
    ) -> Written<'w> {
        Written { layer: Layer::File, name: key, raw, source: place, secret, other: Some(variable.name) }
    }

    fn secret_file(
        &mut self,
        variable: &'static Variable,
        key: &str,
        place: &str,
        value: &Spanned<DeValue<'_>>,
        raw: &str,
    ) {
        let written = self.written(variable, key, raw, place, false);
        let Some(path) = value.get_ref().as_str() else {
            self.findings.problems.push(written.problem("not a string; allowed the path of a file"));
            return;
        };
        self.refuse_double(variable, &written);
        let origin = Origin::File(place.to_owned());
        let named = Written { raw: path, ..written };
        secret_file::read(variable, &named, origin, self.findings, self.values);
    }

    /// A secret stands in the file or beside it, not both.
    fn refuse_double(&mut self, variable: &'static Variable, written: &Written<'_>) {
        if variable.file && self.values.contains_key(variable.name) {
            let both = "the secret and its file are both named; allowed only one of the two";
            self.findings.problems.push(written.problem(both));
        }
    }
}
