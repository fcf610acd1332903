//! What a `CREATE TABLE` declares, read from its text: enough to tell what an existing table lacks.
//!
//! It understands the subset that `schema/tables/` uses and refuses everything else, so that a test fails rather
//! than a check being skipped.

use crate::manifest::without_comments;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) columns: Vec<Column>,
    pub(crate) constraints: Vec<Constraint>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// As `format_type` prints it.
    pub(crate) type_name: String,
    pub(crate) not_null: bool,
    pub(crate) default: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Constraint {
    pub(crate) name: String,
    /// What follows `ADD CONSTRAINT name`.
    pub(crate) definition: String,
    /// The column it was declared with, if any.
    pub(crate) column: Option<String>,
}

impl Column {
    /// The column's part of an `ADD COLUMN`, without its constraints.
    pub(crate) fn definition(&self) -> String {
        let mut text = format!("{} {}", quoted(&self.name), self.type_name);
        if self.not_null {
            text.push_str(" NOT NULL");
        }
        if let Some(default) = &self.default {
            text.push_str(" DEFAULT ");
            text.push_str(default);
        }
        text
    }
}

/// `name` as an identifier, whatever it contains.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Shape {
    pub(crate) fn parse(table: &str, create_table: &str) -> Result<Shape, String> {
        let text = without_comments(create_table);
        let body = text.split_once('(').map(|(_, rest)| rest.trim_end());
        let body = body.and_then(|rest| rest.strip_suffix(')')).ok_or("no list of columns")?;
        let mut shape = Shape { columns: Vec::new(), constraints: Vec::new() };
        for item in split_outside_brackets(body, ',') {
            let words: Vec<&str> = split_outside_brackets(item, ' ');
            shape.add(table, &words).map_err(|what| format!("{what} in {item:?}"))?;
        }
        Ok(shape)
    }

    fn add(&mut self, table: &str, words: &[&str]) -> Result<(), String> {
        match words {
            ["CONSTRAINT", name, definition @ ..] => {
                self.constrain((*name).to_owned(), definition.join(" "), None);
                Ok(())
            }
            ["PRIMARY", "KEY", ..] => {
                self.constrain(format!("{table}_pkey"), words.join(" "), None);
                Ok(())
            }
            ["CHECK" | "UNIQUE" | "FOREIGN", ..] => Err("a constraint without a name".to_owned()),
            [name, type_name, clauses @ ..] => self.add_column(table, name, type_name, clauses),
            _ => Err("neither a column nor a constraint".to_owned()),
        }
    }

    fn add_column(
        &mut self,
        table: &str,
        name: &str,
        type_name: &str,
        mut clauses: &[&str],
    ) -> Result<(), String> {
        let name = name.trim_matches('"').to_owned();
        let type_name = canonical_type(type_name)?;
        let mut column = Column { name, type_name, not_null: false, default: None };
        while let [first, ..] = clauses {
            let length = clause_length(clauses);
            let (clause, rest) = clauses.split_at(length);
            clauses = rest;
            let named = |kind: &str| format!("{table}_{}_{kind}", column.name);
            let this = Some(column.name.clone());
            match *first {
                "NOT" => column.not_null = true,
                "DEFAULT" => column.default = Some(clause.get(1..).unwrap_or_default().join(" ")),
                "PRIMARY" => {
                    column.not_null = true;
                    let definition = format!("PRIMARY KEY ({})", quoted(&column.name));
                    self.constrain(format!("{table}_pkey"), definition, this);
                }
                "REFERENCES" => {
                    let definition = format!("FOREIGN KEY ({}) {}", quoted(&column.name), clause.join(" "));
                    self.constrain(named("fkey"), definition, this);
                }
                "CHECK" => self.constrain(named("check"), clause.join(" "), this),
                other => return Err(format!("unknown clause {other}")),
            }
        }
        self.columns.push(column);
        Ok(())
    }

    fn constrain(&mut self, name: String, definition: String, column: Option<String>) {
        self.constraints.push(Constraint { name, definition, column });
    }
}

/// How many words belong to the clause at the front: up to the next word that opens one.
fn clause_length(words: &[&str]) -> usize {
    const OPENING: [&str; 5] = ["NOT", "DEFAULT", "PRIMARY", "REFERENCES", "CHECK"];
    words.iter().skip(1).position(|word| OPENING.contains(word)).map_or(words.len(), |at| at + 1)
}

/// The pieces between `separator`s that are in no bracket and no literal, trimmed; white space counts as one blank.
fn split_outside_brackets(text: &str, separator: char) -> Vec<&str> {
    let mut depth = 0_usize;
    let mut in_literal = false;
    let pieces = text.split(|c: char| {
        match c {
            '\'' => in_literal = !in_literal,
            '(' if !in_literal => depth += 1,
            ')' if !in_literal => depth = depth.saturating_sub(1),
            _ => {}
        }
        let separates = c == separator || (separator == ' ' && c.is_whitespace());
        separates && depth == 0 && !in_literal
    });
    pieces.map(str::trim).filter(|piece| !piece.is_empty()).collect()
}

fn canonical_type(declared: &str) -> Result<String, String> {
    Ok(match declared {
        "UUID" => "uuid",
        "TEXT" => "text",
        "BYTEA" => "bytea",
        "JSONB" => "jsonb",
        "SMALLINT" => "smallint",
        "INTEGER" => "integer",
        "BIGINT" => "bigint",
        "REAL" => "real",
        "BOOLEAN" => "boolean",
        "TIMESTAMPTZ" => "timestamp with time zone",
        "VARCHAR(20)" => "character varying(20)",
        "VARCHAR(50)" => "character varying(50)",
        "VARCHAR(100)" => "character varying(100)",
        "VARCHAR(255)" => "character varying(255)",
        "VARCHAR(512)" => "character varying(512)",
        "NUMERIC(10,2)" => "numeric(10,2)",
        other => return Err(format!("unknown type {other}")),
    }
    .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read() {
        let sql = "CREATE TABLE IF NOT EXISTS queen.t (
            id       UUID PRIMARY KEY DEFAULT gen_random_uuid(),
            other_id UUID NOT NULL REFERENCES queen.o (id) ON DELETE CASCADE,
            -- a comment, with (brackets) and a comma
            name     VARCHAR(255) NOT NULL DEFAULT 'a, b (c) CHECK',
            n        BIGINT NOT NULL DEFAULT -1 CHECK (n >= -1 AND n < 10),
            \"offset\" TIMESTAMPTZ,
            CONSTRAINT t_uk UNIQUE (other_id, name),
            CONSTRAINT t_check CHECK (
                (n IS NULL) = (name IS NULL)
            )
        )";
        let shape = Shape::parse("t", sql).unwrap();
        let columns: Vec<String> = shape.columns.iter().map(Column::definition).collect();
        assert_eq!(
            columns,
            [
                "\"id\" uuid NOT NULL DEFAULT gen_random_uuid()",
                "\"other_id\" uuid NOT NULL",
                "\"name\" character varying(255) NOT NULL DEFAULT 'a, b (c) CHECK'",
                "\"n\" bigint NOT NULL DEFAULT -1",
                "\"offset\" timestamp with time zone",
            ]
        );
        let constraints: Vec<(&str, &str)> =
            shape.constraints.iter().map(|c| (c.name.as_str(), c.definition.as_str())).collect();
        assert_eq!(constraints[0], ("t_pkey", "PRIMARY KEY (\"id\")"));
        assert_eq!(
            constraints[1],
            ("t_other_id_fkey", "FOREIGN KEY (\"other_id\") REFERENCES queen.o (id) ON DELETE CASCADE")
        );
        assert_eq!(constraints[2], ("t_n_check", "CHECK (n >= -1 AND n < 10)"));
        assert_eq!(constraints[3], ("t_uk", "UNIQUE (other_id, name)"));
        assert!(constraints[4].1.starts_with("CHECK (") && constraints[4].0 == "t_check");
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for body in ["a MONEY", "a TEXT COLLATE \"C\"", "a TEXT, CHECK (a <> '')", "a"] {
            assert!(Shape::parse("t", &format!("CREATE TABLE t ({body})")).is_err(), "{body}");
        }
    }
}
