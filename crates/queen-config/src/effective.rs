//! The configuration in force, for the boot banner and for `queen-server config print`.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use crate::findings::Origin;
use crate::merge::Merged;
use crate::registry::{Effect, SECTIONS, Variable};
use crate::value::{Value, masked};

/// One variable with its value.
#[derive(Clone)]
pub struct Setting {
    /// The variable.
    pub variable: &'static Variable,
    /// The value in force; `None` when nothing sets it and it has no default.
    pub value: Option<Value>,
    /// Where it comes from.
    pub origin: Origin,
    block: &'static str,
}

/// Every variable with the value in force. Secrets are masked in every text that this type makes; only
/// [`Setting::value`] holds them.
#[derive(Debug, Clone, Default)]
pub struct Effective {
    settings: Vec<Setting>,
}

/// How `config print` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// As the configuration file is written.
    Toml,
    /// As an environment file is written.
    Env,
    /// As an array of objects.
    Json,
}

impl Format {
    /// Reads the word of `--format`.
    pub fn parse(word: &str) -> Option<Format> {
        match word {
            "toml" => Some(Format::Toml),
            "env" => Some(Format::Env),
            "json" => Some(Format::Json),
            _ => None,
        }
    }
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={} ({})", self.variable.name, self.shown(), self.origin)
    }
}

impl Setting {
    /// The value as it may be shown: secrets masked, `<unset>` for nothing.
    pub fn shown(&self) -> String {
        match &self.value {
            None => "<unset>".to_owned(),
            Some(value) if value.plain().is_empty() && self.variable.secret => "<unset>".to_owned(),
            Some(value) if self.variable.secret => masked(&value.plain()),
            // A certificate is no secret, but it is no line either.
            Some(Value::Text(pem)) if pem.contains('\n') => format!("<{} lines>", pem.lines().count()),
            Some(value) => value.plain(),
        }
    }

    fn is_default(&self) -> bool {
        self.origin == Origin::Default
    }
}

impl Effective {
    pub(crate) fn of(merged: &Merged) -> Effective {
        let mut settings = Vec::new();
        for section in SECTIONS {
            for variable in section.variables {
                settings.push(Setting {
                    variable,
                    value: merged.get(variable).map(|(value, _)| value.clone()),
                    origin: merged.origin(variable.name),
                    block: section.block,
                });
            }
        }
        Effective { settings }
    }

    /// Every setting, in the order of the documentation.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// Whether nobody has set this variable.
    pub fn is_default(&self, name: &str) -> bool {
        self.settings.iter().all(|setting| setting.variable.name != name || setting.is_default())
    }

    /// The boot banner: one line a block, `config: server port=6632 ...`. Settings that this version acts on, and
    /// others that somebody set; what is not a default is followed by its origin.
    pub fn banner(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for section in SECTIONS {
            let shown = self.settings.iter().filter(|s| {
                s.block == section.block && (s.variable.effect == Effect::Live || !is_implied(&s.origin))
            });
            let parts: Vec<String> = shown.map(banner_part).collect();
            if !parts.is_empty() {
                lines.push(format!("config: {} {}", section.block, parts.join(" ")));
            }
        }
        lines
    }

    /// The text of `config print`.
    pub fn print(&self, format: Format) -> String {
        match format {
            Format::Toml => self.toml(),
            Format::Env => self.env(),
            Format::Json => self.json(),
        }
    }

    fn toml(&self) -> String {
        // A table may be opened once only, and its rows may stand in several sections of the registry.
        let mut tables: BTreeMap<&str, String> = BTreeMap::new();
        for setting in &self.settings {
            let Some(key) = setting.variable.key else { continue };
            let (table, last) = key.rsplit_once('.').unwrap_or(("", key));
            let lines = tables.entry(table).or_default();
            let origin = &setting.origin;
            // Writing to a String cannot fail.
            let _ = match toml_value(setting) {
                Some(value) => writeln!(lines, "{last} = {value}  # {origin}"),
                None => writeln!(lines, "# {last}: {}", setting.shown()),
            };
        }
        let tables: Vec<String> = tables.iter().map(|(table, lines)| format!("[{table}]\n{lines}")).collect();
        tables.join("\n")
    }

    fn env(&self) -> String {
        let mut out = String::new();
        for setting in &self.settings {
            let name = setting.variable.name;
            let _ = writeln!(out, "{name}={}  # {}", setting.shown(), setting.origin);
        }
        out
    }

    fn json(&self) -> String {
        let mut out = String::from("[");
        for (i, setting) in self.settings.iter().enumerate() {
            let value = match &setting.value {
                None => "null".to_owned(),
                Some(Value::Bool(b)) => b.to_string(),
                Some(Value::Int(n)) => n.to_string(),
                Some(Value::Float(x)) => x.to_string(),
                Some(_) => json_text(&setting.shown()),
            };
            let key = setting.variable.key.map_or("null".to_owned(), json_text);
            let _ = write!(
                out,
                "{}\n  {{\"name\":{},\"key\":{key},\"value\":{value},\"source\":{}}}",
                if i == 0 { "" } else { "," },
                json_text(setting.variable.name),
                json_text(&setting.origin.to_string()),
            );
        }
        out.push_str("\n]\n");
        out
    }
}

fn is_implied(origin: &Origin) -> bool {
    matches!(origin, Origin::Default | Origin::Derived)
}

fn banner_part(setting: &Setting) -> String {
    let key = setting.variable.key.unwrap_or(setting.variable.name);
    // The block names the table already.
    let short = key.split_once('.').map_or(key, |(_, rest)| rest);
    let value = setting.shown();
    // A masked value says so in brackets of its own.
    let quote = value.contains(char::is_whitespace) && !value.starts_with('<');
    let value = if quote { format!("{value:?}") } else { value };
    if setting.is_default() {
        format!("{short}={value}")
    } else {
        format!("{short}={value} ({})", setting.origin)
    }
}

fn toml_value(setting: &Setting) -> Option<String> {
    if setting.variable.secret {
        return None;
    }
    Some(match setting.value.as_ref()? {
        Value::Text(t) => json_text(t),
        Value::List(l) => format!("[{}]", l.iter().map(|t| json_text(t)).collect::<Vec<_>>().join(", ")),
        Value::Float(x) => format!("{x:?}"),
        value => value.plain(),
    })
}

/// A text in quotes, with the escapes that JSON and TOML share.
fn json_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
