//! Which files make up the schema, in order, and what each of their statements makes.

use crate::error::SchemaError;

/// A file of `schema/tables/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File {
    /// The name, without a folder.
    pub name: &'static str,
    /// The whole text.
    pub text: &'static str,
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(File { name: $name, text: include_str!(concat!("../../../schema/tables/", $name)) }),*]
    };
}

/// The files of the schema in the order of their application.
pub fn files() -> &'static [File] {
    const FILES: &[File] = files![
        "010_schemas.sql",
        "020_system_state.sql",
        "030_queues.sql",
        "040_log_partitions.sql",
        "050_log_segments.sql",
        "060_log_txns.sql",
        "070_log_consumers.sql",
        "080_log_dlq.sql",
        "090_consumer_groups_metadata.sql",
        "100_hotlist_repairs.sql",
        "110_message_traces.sql",
        "120_maintenance.sql",
        "130_stats.sql",
        "140_metrics.sql",
    ];
    FILES
}

/// One statement and what it makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) file: &'static str,
    pub(crate) object: Object,
    pub(crate) sql: &'static str,
}

/// `schema.name`, unquoted: the schema's own names need no quotes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) schema: String,
    pub(crate) name: String,
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

/// What the line `--@ kind name [details]` before a statement says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Object {
    Schema(String),
    Table(Name),
    /// A column that was added to a table after its first release.
    Column(Name, String),
    Index(Name),
    /// Storage parameters, each as `key=value`; those of the TOAST table begin with `toast.`.
    Reloptions(Name, Vec<String>),
    /// A column that is kept out of line, uncompressed.
    External(Name, String),
}

impl Object {
    /// For messages.
    pub(crate) fn describe(&self) -> String {
        match self {
            Object::Schema(schema) => format!("schema {schema}"),
            Object::Table(table) => format!("table {table}"),
            Object::Column(table, column) => format!("column {table}.{column}"),
            Object::Index(index) => format!("index {index}"),
            Object::Reloptions(table, _) => format!("storage parameters of {table}"),
            Object::External(table, column) => format!("storage of {table}.{column}"),
        }
    }
}

/// All statements in order.
pub(crate) fn statements() -> Result<Vec<Statement>, SchemaError> {
    let mut all = Vec::new();
    for file in files() {
        parse_file(file, &mut all).map_err(|what| SchemaError::Manifest(format!("{}: {what}", file.name)))?;
    }
    Ok(all)
}

const MARK: &str = "--@ ";

fn parse_file(file: &File, all: &mut Vec<Statement>) -> Result<(), String> {
    // The first piece is the comment at the top.
    for piece in file.text.split(MARK).skip(1) {
        let (header, sql) = piece.split_once('\n').ok_or("a header without a statement")?;
        let object = parse_header(header).ok_or_else(|| format!("cannot read {header:?}"))?;
        let sql = sql.trim().strip_suffix(';').ok_or_else(|| format!("{header}: no semicolon at the end"))?;
        if without_comments(sql).contains(';') {
            return Err(format!("{header}: more than one statement"));
        }
        all.push(Statement { file: file.name, object, sql });
    }
    Ok(())
}

fn parse_header(header: &str) -> Option<Object> {
    let mut words = header.split_whitespace();
    let kind = words.next()?;
    let name = words.next()?;
    let rest: Vec<String> = words.map(str::to_owned).collect();
    match kind {
        "schema" if rest.is_empty() => Some(Object::Schema(name.to_owned())),
        "table" if rest.is_empty() => Some(Object::Table(two_parts(name)?)),
        "index" if rest.is_empty() => Some(Object::Index(two_parts(name)?)),
        "column" if rest.is_empty() => three_parts(name).map(|(table, column)| Object::Column(table, column)),
        "storage" if rest == ["external"] => {
            three_parts(name).map(|(table, column)| Object::External(table, column))
        }
        "reloptions" if !rest.is_empty() && rest.iter().all(|option| option.contains('=')) => {
            Some(Object::Reloptions(two_parts(name)?, rest))
        }
        _ => None,
    }
}

fn two_parts(text: &str) -> Option<Name> {
    let (schema, name) = text.split_once('.')?;
    let plain = |part: &str| !part.is_empty() && !part.contains(['.', '"']);
    (plain(schema) && plain(name)).then(|| Name { schema: schema.to_owned(), name: name.to_owned() })
}

fn three_parts(text: &str) -> Option<(Name, String)> {
    let (table, column) = text.rsplit_once('.')?;
    Some((two_parts(table)?, column.to_owned()))
}

/// The text without `--` comments. The files use no other kind, and no `--` inside a literal.
pub(crate) fn without_comments(sql: &str) -> String {
    sql.lines()
        .map(|line| line.split_once("--").map_or(line, |(code, _)| code))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_listed_once_and_in_order() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/tables");
        let mut on_disk: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        on_disk.sort();
        let listed: Vec<&str> = files().iter().map(|file| file.name).collect();
        assert_eq!(listed, on_disk);
    }

    #[test]
    fn every_statement_is_what_its_header_says() {
        let all = statements().unwrap();
        assert!(all.len() > 20, "{}", all.len());
        for statement in &all {
            let sql = statement.sql;
            let begins = match &statement.object {
                Object::Schema(name) => format!("CREATE SCHEMA IF NOT EXISTS {name}"),
                Object::Table(name) => format!("CREATE TABLE IF NOT EXISTS {name} ("),
                Object::Column(table, column) => {
                    format!("ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {column} ")
                }
                Object::Index(name) => {
                    assert!(sql.contains(&format!("INDEX IF NOT EXISTS {} ON {}.", name.name, name.schema)));
                    "CREATE ".to_owned()
                }
                Object::Reloptions(table, options) => {
                    for option in options {
                        assert!(sql.contains(&option.replacen('=', " = ", 1)), "{option} is not in {sql}");
                    }
                    assert_eq!(sql.matches(" = ").count(), options.len(), "{sql}");
                    format!("ALTER TABLE {table} SET (")
                }
                Object::External(table, column) => {
                    format!("ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTERNAL")
                }
            };
            assert!(sql.starts_with(&begins), "{begins:?} does not begin {sql:?}");
        }
    }

    #[test]
    fn bad_text_is_refused() {
        for text in [
            "--@ table queen.t",
            "--@ table queen.t\nCREATE TABLE queen.t ()",
            "--@ table t\nCREATE TABLE t ();",
            "--@ table queen.t extra\nCREATE TABLE queen.t ();",
            "--@ view queen.v\nCREATE VIEW queen.v;",
            "--@ reloptions queen.t\nALTER TABLE queen.t SET ();",
            "--@ storage queen.t.c plain\nALTER TABLE queen.t;",
            "--@ table queen.t\nCREATE TABLE queen.t (); DROP TABLE queen.t;",
        ] {
            assert!(parse_file(&File { name: "x", text }, &mut Vec::new()).is_err(), "{text}");
        }
    }
}
