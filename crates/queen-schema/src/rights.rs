//! Says before any DDL which right is missing, who could give it, and how.

use crate::catalogue::Catalogue;
use crate::error::SchemaError;
use crate::manifest::{Name, Statement};
use crate::plan::{Action, Needs, tables};

/// Whether this session may do everything that is planned. What is about to be made belongs to it.
pub(crate) fn to_apply(actions: &[Action], catalogue: &Catalogue) -> Result<(), SchemaError> {
    for action in actions {
        if let Some(lack) = lack(&action.needs, catalogue) {
            return Err(SchemaError::Rights(format!("{} is missing, but {lack}", action.object)));
        }
    }
    Ok(())
}

/// Whether this session may serve from what exists.
pub(crate) fn to_serve(statements: &[Statement], catalogue: &Catalogue) -> Result<(), SchemaError> {
    let user = &catalogue.user;
    for (schema, facts) in &catalogue.schemas {
        if !facts.may_use {
            let owner = &facts.owner;
            let lack = format!("role {user:?} may not use schema {schema}, which belongs to {owner:?}");
            return Err(SchemaError::Rights(format!("{lack}: {}", fix(owner, user))));
        }
    }
    for table in tables(statements) {
        let Some(facts) = catalogue.relations.get(table) else { continue };
        if catalogue.is_table(table) && !facts.may_write {
            let owner = &facts.owner;
            let lack = format!("role {user:?} may not read and write {table}, which belongs to {owner:?}");
            return Err(SchemaError::Rights(format!("{lack}: {}", fix(owner, user))));
        }
    }
    Ok(())
}

fn lack(needs: &Needs, catalogue: &Catalogue) -> Option<String> {
    let user = &catalogue.user;
    match needs {
        Needs::CreateSchema if !catalogue.may_create_schemas => {
            let database = &catalogue.database;
            Some(format!(
                "role {user:?} may not create schemas in database {database:?}: \
                 GRANT CREATE ON DATABASE {database} TO {user}, or let the owner of the database start once"
            ))
        }
        Needs::CreateSchema => None,
        Needs::CreateIn(schema) => {
            let facts = catalogue.schemas.get(schema).filter(|facts| !facts.may_create)?;
            let owner = &facts.owner;
            Some(format!(
                "role {user:?} may not create in schema {schema}, which belongs to {owner:?}: {}",
                fix(owner, user)
            ))
        }
        Needs::OwnSchema(schema) => {
            let facts = catalogue.schemas.get(schema).filter(|facts| !facts.is_ours)?;
            Some(not_owner(&format!("schema {schema}"), &facts.owner, user))
        }
        Needs::OwnTable(table) => {
            let facts = catalogue.relations.get(table).filter(|facts| !facts.is_ours)?;
            Some(not_owner(&table.to_string(), &facts.owner, user))
        }
        Needs::WriteTable(table) => may_not_write(table, catalogue),
    }
}

fn may_not_write(table: &Name, catalogue: &Catalogue) -> Option<String> {
    let facts = catalogue.relations.get(table).filter(|facts| !facts.may_write)?;
    let (user, owner) = (&catalogue.user, &facts.owner);
    Some(format!("role {user:?} may not write {table}, which belongs to {owner:?}: {}", fix(owner, user)))
}

fn not_owner(object: &str, owner: &str, user: &str) -> String {
    format!("{object} belongs to {owner:?} and role {user:?} is not a member of it: {}", fix(owner, user))
}

fn fix(owner: &str, user: &str) -> String {
    format!(
        "start once as {owner:?} with QUEEN_DB_ROLE={user}, or REASSIGN OWNED BY {owner} TO {user}, \
         or restore with pg_restore --role={user}"
    )
}
