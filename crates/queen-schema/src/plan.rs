//! From what should be and what is to what has to run. Pure.

use crate::catalogue::Catalogue;
use crate::error::SchemaError;
use crate::manifest::{Name, Object, Statement};
use crate::shape::{Shape, quoted};
use crate::version::Verdict;

/// One statement to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Action {
    pub(crate) file: &'static str,
    /// What it makes, in words.
    pub(crate) object: String,
    pub(crate) work: Work,
    pub(crate) needs: Needs,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Work {
    Ddl(String),
    /// Write the schema version row.
    Stamp,
}

/// The right that an action takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Needs {
    CreateSchema,
    CreateIn(String),
    OwnTable(Name),
    OwnSchema(String),
    WriteTable(Name),
}

#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) actions: Vec<Action>,
    /// What exists with another shape, in words.
    pub(crate) differences: Vec<String>,
}

pub(crate) fn system_state() -> Name {
    Name { schema: "queen".to_owned(), name: "system_state".to_owned() }
}

/// The schemas that the statements make, in order.
pub(crate) fn schemas(statements: &[Statement]) -> Vec<String> {
    statements
        .iter()
        .filter_map(|statement| match &statement.object {
            Object::Schema(schema) => Some(schema.clone()),
            _ => None,
        })
        .collect()
}

/// The tables that the statements make, in order.
pub(crate) fn tables(statements: &[Statement]) -> impl Iterator<Item = &Name> {
    statements.iter().filter_map(|statement| match &statement.object {
        Object::Table(name) => Some(name),
        _ => None,
    })
}

impl Plan {
    pub(crate) fn make(
        statements: &[Statement],
        catalogue: &Catalogue,
        grant_roles: &[String],
        verdict: Verdict,
    ) -> Result<Plan, SchemaError> {
        let mut plan = Plan::default();
        if verdict == Verdict::Newer {
            return Ok(plan);
        }
        for statement in statements {
            plan.consider(statement, catalogue)?;
            let is_state = matches!(&statement.object, Object::Table(name) if *name == system_state());
            if is_state && verdict == Verdict::Virgin {
                plan.stamp(statement.file);
            }
        }
        // Under tolerance the row is written only over no row, and only for a shape that is found to be ours.
        let complete = plan.actions.is_empty() && plan.differences.is_empty();
        let adopts = verdict == Verdict::Tolerated && catalogue.stamp.is_none() && complete;
        if verdict == Verdict::Predecessor || adopts {
            plan.stamp("020_system_state.sql");
        }
        for role in grant_roles {
            plan.grant(role, statements, catalogue)?;
        }
        Ok(plan)
    }

    fn push(&mut self, file: &'static str, object: String, sql: String, needs: Needs) {
        self.actions.push(Action { file, object, work: Work::Ddl(sql), needs });
    }

    fn stamp(&mut self, file: &'static str) {
        let needs = Needs::WriteTable(system_state());
        self.actions.push(Action { file, object: "schema version row".to_owned(), work: Work::Stamp, needs });
    }

    fn consider(&mut self, statement: &Statement, catalogue: &Catalogue) -> Result<(), SchemaError> {
        let missing = match &statement.object {
            Object::Schema(schema) => {
                (!catalogue.schemas.contains_key(schema)).then_some(Needs::CreateSchema)
            }
            Object::Table(table) if catalogue.is_table(table) => {
                return self.compare(table, statement, catalogue);
            }
            Object::Table(table) => {
                if let Some(other) = catalogue.relations.get(table) {
                    self.differences.push(format!("{table} is no table (relkind {})", other.kind));
                    return Ok(());
                }
                Some(Needs::CreateIn(table.schema.clone()))
            }
            Object::Column(table, column) => {
                (!catalogue.columns.contains_key(&(table.clone(), column.clone())))
                    .then(|| Needs::OwnTable(table.clone()))
            }
            Object::Index(index) => {
                let table = indexed_table(statement, index)?;
                (!catalogue.relations.contains_key(index)).then_some(Needs::OwnTable(table))
            }
            Object::Reloptions(table, options) => {
                let present = catalogue.relations.get(table).map(|relation| &relation.options);
                let complete = present.is_some_and(|present| options.iter().all(|o| present.contains(o)));
                (!complete).then(|| Needs::OwnTable(table.clone()))
            }
            Object::External(table, column) => {
                let found = catalogue.columns.get(&(table.clone(), column.clone()));
                (found.is_none_or(|column| column.storage != "e")).then(|| Needs::OwnTable(table.clone()))
            }
        };
        if let Some(needs) = missing {
            self.push(statement.file, statement.object.describe(), statement.sql.to_owned(), needs);
        }
        Ok(())
    }

    /// An existing table gets the columns, defaults and constraints that it lacks. Columns of another type are told;
    /// columns and constraints that are not ours are let be.
    fn compare(
        &mut self,
        table: &Name,
        statement: &Statement,
        catalogue: &Catalogue,
    ) -> Result<(), SchemaError> {
        let shape = Shape::parse(&table.name, statement.sql)
            .map_err(|what| SchemaError::Manifest(format!("{}: {what}", statement.file)))?;
        let mut alter = |object: String, change: String| {
            self.push(
                statement.file,
                object,
                format!("ALTER TABLE {table} {change}"),
                Needs::OwnTable(table.clone()),
            );
        };
        let mut differences = Vec::new();
        for column in &shape.columns {
            let object = format!("column {table}.{}", column.name);
            let Some(found) = catalogue.columns.get(&(table.clone(), column.name.clone())) else {
                alter(object, format!("ADD COLUMN IF NOT EXISTS {}", column.definition()));
                continue;
            };
            if found.type_name != column.type_name {
                differences.push(format!("{object} is {}, not {}", found.type_name, column.type_name));
            }
            if let (Some(default), false) = (&column.default, found.has_default) {
                let change = format!("ALTER COLUMN {} SET DEFAULT {default}", quoted(&column.name));
                alter(format!("default of {object}"), change);
            }
            if column.not_null && !found.not_null {
                alter(
                    format!("NOT NULL of {object}"),
                    format!("ALTER COLUMN {} SET NOT NULL", quoted(&column.name)),
                );
            }
        }
        for constraint in &shape.constraints {
            if !catalogue.constraints.contains(&(table.clone(), constraint.name.clone())) {
                let change = format!("ADD CONSTRAINT {} {}", quoted(&constraint.name), constraint.definition);
                alter(format!("constraint {} of {table}", constraint.name), change);
            }
        }
        self.differences.append(&mut differences);
        Ok(())
    }

    /// Grants what the role lacks on what exists. An apply on a virgin database plans the tables first and comes back
    /// for these.
    fn grant(
        &mut self,
        role: &str,
        statements: &[Statement],
        catalogue: &Catalogue,
    ) -> Result<(), SchemaError> {
        const FILE: &str = "grants";
        let found = catalogue.roles.get(role).ok_or_else(|| SchemaError::UnknownRole(role.to_owned()))?;
        if role == catalogue.user {
            return Ok(());
        }
        let grantee = quoted(role);
        for schema in schemas(statements) {
            let Some(facts) = catalogue.schemas.get(&schema) else { continue };
            if !found.uses.contains(&schema) {
                let sql = format!("GRANT USAGE ON SCHEMA {schema} TO {grantee}");
                self.push(
                    FILE,
                    format!("USAGE on {schema} for {role}"),
                    sql,
                    Needs::OwnSchema(schema.clone()),
                );
            }
            // Only what a role makes itself can get default privileges from it.
            if facts.may_create && !found.will_write.contains(&schema) {
                let sql = format!(
                    "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES \
                     TO {grantee}"
                );
                let object = format!("default privileges in {schema} for {role}");
                self.push(FILE, object, sql, Needs::CreateIn(schema.clone()));
            }
        }
        for table in tables(statements).filter(|table| catalogue.is_table(table)) {
            if !found.writes.contains(table) {
                let sql = format!("GRANT SELECT, INSERT, UPDATE, DELETE ON TABLE {table} TO {grantee}");
                self.push(FILE, format!("rights on {table} for {role}"), sql, Needs::OwnTable(table.clone()));
            }
        }
        Ok(())
    }
}

/// The table after `ON`.
fn indexed_table(statement: &Statement, index: &Name) -> Result<Name, SchemaError> {
    let after = statement.sql.split_once(&format!(" ON {}.", index.schema)).map(|(_, rest)| rest);
    let table = after.and_then(|rest| rest.split([' ', '(', '\n']).next());
    table
        .map(|name| Name { schema: index.schema.clone(), name: name.to_owned() })
        .ok_or_else(|| SchemaError::Manifest(format!("{}: index {index} on no table", statement.file)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::statements;

    #[test]
    fn a_virgin_database_gets_everything_and_the_row_right_after_its_table() {
        let all = statements().unwrap();
        let plan = Plan::make(&all, &Catalogue::default(), &[], Verdict::Virgin).unwrap();
        assert_eq!(plan.actions.len(), all.len() + 1);
        let at = plan.actions.iter().position(|action| action.work == Work::Stamp).unwrap();
        assert_eq!(plan.actions[at - 1].object, "table queen.system_state");
        let other_tables_before =
            plan.actions[..at - 1].iter().filter(|action| action.object.starts_with("table"));
        assert_eq!(other_tables_before.count(), 0);
        assert!(plan.differences.is_empty());
    }

    #[test]
    fn a_newer_schema_is_left_alone() {
        let plan = Plan::make(&statements().unwrap(), &Catalogue::default(), &[], Verdict::Newer).unwrap();
        assert!(plan.actions.is_empty());
    }

    #[test]
    fn every_table_of_the_schema_can_be_compared() {
        for statement in statements().unwrap() {
            if let Object::Table(name) = &statement.object {
                let shape = Shape::parse(&name.name, statement.sql).unwrap();
                assert!(!shape.columns.is_empty() && !shape.constraints.is_empty(), "{name}");
            }
            if let Object::Index(name) = &statement.object {
                let table = indexed_table(&statement, name).unwrap();
                assert!(tables(&statements().unwrap()).any(|known| *known == table), "{table}");
            }
        }
    }

    #[test]
    fn an_unknown_role_is_named() {
        let roles = ["ghost".to_owned()];
        let refused = Plan::make(&statements().unwrap(), &Catalogue::default(), &roles, Verdict::Virgin);
        assert!(matches!(refused, Err(SchemaError::UnknownRole(role)) if role == "ghost"));
    }
}
