//! Texts made from the registry: `docs/configuration.md` and `queen-server config schema`.

use std::fmt::Write;

use crate::parse::allowed;
use crate::registry::{AliasKind, DEAD_NAMES, Default, Effect, Empty, Kind, SECTIONS, Variable, variables};
use crate::value::Value;

const HEAD: &str = "\
# Configuration

Generated from `crates/queen-config/src/registry`; a test keeps it in step. `queen-server config schema` prints the same
table, `queen-server config print` the values in force with their sources, `queen-server config check` every problem.

Values come from three layers, each over the one before: the compiled-in defaults, a TOML file, the environment. The
file is the one that `--config` names, else `QUEEN_CONFIG_FILE`, else `/etc/queen/queen.toml` when it exists.

- Booleans are `true/false`, `1/0`, `yes/no`, `on/off`, in any case. In the file they are TOML booleans.
- An empty value counts as not set, except where the table says otherwise.
- A value that does not parse, or that is outside of a range where it means nothing, ends the start; all problems are
  reported at once. \"At least\" ranges and the like move the value to the nearer end, with a warning.
- A secret may stand in a file of its own: `<NAME>_FILE`, in the file `<key>_file`. One line break at its end is not
  part of it.
- An unknown key in the file ends the start. An unknown `QUEEN_*` variable is warned about.

The column *Effect* says `yes`, or `planned` for what belongs to a feature that this version does not have, or `none`
for what tunes a structure that this product does not have; both are accepted and checked.
";

/// `docs/configuration.md`, from the registry.
pub fn docs_markdown() -> String {
    let mut out = String::from(HEAD);
    for section in SECTIONS {
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "\n## {}\n\n| Variable | Key | Type | Default | Allowed | Effect | Meaning |\n|---|---|---|---|---|---|---|\n",
            section.title
        );
        for variable in section.variables {
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} | {} |",
                names(variable),
                variable.key.map_or(String::new(), |key| format!("`{key}`")),
                type_word(variable),
                default_cell(variable),
                range_cell(variable).replace('|', "\\|"),
                effect_word(variable.effect),
                meaning(variable),
            );
        }
    }
    out.push_str(
        "\n## Names without effect\n\nThese are known and warned about.\n\n| Name | Why |\n|---|---|\n",
    );
    for (name, why) in DEAD_NAMES {
        let _ = writeln!(out, "| `{name}` | {why} |");
    }
    out
}

/// The text of `config schema`: one line a variable, columns separated by tabs.
pub fn schema_text() -> String {
    let mut out = String::from("name\tkey\ttype\tdefault\tallowed\teffect\tmeaning\n");
    for variable in variables() {
        let _ = writeln!(
            out,
            "{}\t{}\t{}\t{}\t{}\t{}\t{}",
            variable.name,
            variable.key.unwrap_or("-"),
            type_word(variable),
            default_text(variable),
            range_cell(variable),
            effect_word(variable.effect),
            variable.doc,
        );
    }
    out
}

fn names(variable: &Variable) -> String {
    let mut out = format!("`{}`", variable.name);
    for alias in variable.aliases {
        let _ = match alias.kind {
            AliasKind::Wins => write!(out, "; `{}` wins over it", alias.name),
            AliasKind::Yields => write!(out, "; also `{}`", alias.name),
            AliasKind::Legacy => write!(out, "; formerly `{}`", alias.name),
            AliasKind::Platform => write!(out, "; else `{}`", alias.name),
        };
    }
    if variable.file {
        let _ = write!(out, "; `{}_FILE`", variable.name);
    }
    out
}

fn type_word(variable: &Variable) -> &'static str {
    match (variable.secret, variable.kind) {
        (true, Kind::List) => "secret list",
        (true, _) => "secret",
        (false, Kind::Bool) => "boolean",
        (false, Kind::Int { .. }) => "integer",
        (false, Kind::Float { .. }) => "number",
        (false, Kind::Text) => "text",
        (false, Kind::Choice(_)) => "word",
        (false, Kind::List) => "list",
        (false, Kind::Pem(_)) => "PEM",
    }
}

fn default_text(variable: &Variable) -> String {
    match (variable.default, Value::default_of(variable)) {
        (Default::Derived(how), _) => how.to_owned(),
        (_, Some(Value::List(l))) if l.is_empty() => "empty".to_owned(),
        (_, Some(value)) => value.plain(),
        (_, None) => "unset".to_owned(),
    }
}

fn default_cell(variable: &Variable) -> String {
    match variable.default {
        Default::Unset | Default::Derived(_) | Default::List([]) => default_text(variable),
        _ => format!("`{}`", default_text(variable)),
    }
}

fn range_cell(variable: &Variable) -> String {
    let mut out = allowed(variable);
    if let Kind::Int { fatal, clamp, warn_below, warn_above } = variable.kind {
        if let Some((floor, _)) = clamp.filter(|_| fatal != (i64::MIN, i64::MAX)) {
            let _ = write!(out, "; raised to {floor}");
        }
        if let Some(floor) = warn_below {
            let _ = write!(out, "; warned about under {floor}");
        }
        if let Some(ceiling) = warn_above {
            let _ = write!(out, "; warned about above {ceiling}");
        }
    }
    match variable.empty {
        Empty::Unset => {}
        Empty::Value => out.push_str("; may be empty"),
        Empty::Fatal => out.push_str("; never empty"),
    }
    out
}

fn effect_word(effect: Effect) -> &'static str {
    match effect {
        Effect::Live => "yes",
        Effect::Planned => "planned",
        Effect::Without => "none",
    }
}

fn meaning(variable: &Variable) -> String {
    variable.doc.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");

    #[test]
    fn the_checked_in_file_is_in_step() {
        if std::env::var_os("QUEEN_WRITE_DOCS").is_some() {
            std::fs::write(PATH, docs_markdown()).unwrap();
        }
        let file = std::fs::read_to_string(PATH).unwrap();
        assert!(
            file == docs_markdown(),
            "docs/configuration.md is out of step: QUEEN_WRITE_DOCS=1 cargo test -p queen-config"
        );
    }

    #[test]
    fn the_schema_lists_every_variable_once() {
        let text = schema_text();
        assert_eq!(text.lines().count(), variables().count() + 1);
        assert!(text.lines().all(|line| line.split('\t').count() == 7));
        assert!(text.contains("\nDB_POOL_SIZE\tpostgres.pool_size\tinteger\t160\t1 to 10000; raised to 4; warned about under 8\tyes\t"));
    }
}
