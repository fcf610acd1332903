//! What the database holds at this moment, read in a handful of catalogue queries.

use crate::error::SchemaError;
use crate::manifest::Name;
use crate::version::Stamp;
use queen_pg::{Conn, PgError, Row};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    /// The role of this session.
    pub(crate) user: String,
    pub(crate) database: String,
    pub(crate) may_create_schemas: bool,
    pub(crate) schemas: BTreeMap<String, Schema>,
    pub(crate) relations: BTreeMap<Name, Relation>,
    pub(crate) columns: BTreeMap<(Name, String), Column>,
    pub(crate) constraints: BTreeSet<(Name, String)>,
    pub(crate) roles: BTreeMap<String, Role>,
    pub(crate) stamp: Option<Stamp>,
}

#[derive(Debug)]
pub(crate) struct Schema {
    pub(crate) owner: String,
    pub(crate) may_use: bool,
    pub(crate) may_create: bool,
    pub(crate) is_ours: bool,
}

#[derive(Debug)]
pub(crate) struct Relation {
    /// `pg_class.relkind`.
    pub(crate) kind: String,
    pub(crate) owner: String,
    /// Whether this session has the owner's rights.
    pub(crate) is_ours: bool,
    /// Whether this session may read and write it.
    pub(crate) may_write: bool,
    /// `key=value`, those of the TOAST table with `toast.` before them.
    pub(crate) options: BTreeSet<String>,
    /// `false` for an index whose concurrent build failed.
    pub(crate) is_valid: bool,
}

#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) type_name: String,
    pub(crate) not_null: bool,
    pub(crate) has_default: bool,
    /// `pg_attribute.attstorage`.
    pub(crate) storage: String,
}

/// What a role of `QUEEN_DB_ROLE` has already.
#[derive(Debug, Default)]
pub(crate) struct Role {
    pub(crate) uses: BTreeSet<String>,
    pub(crate) writes: BTreeSet<Name>,
    /// Schemas whose future tables, made by this session's role, it will get.
    pub(crate) will_write: BTreeSet<String>,
}

const SESSION: &str = "SELECT current_user::text, current_database()::text, \
     has_database_privilege(current_database(), 'CREATE')";

const SCHEMAS: &str = "SELECT nspname::text, pg_get_userbyid(nspowner)::text, \
     has_schema_privilege(oid, 'USAGE'), has_schema_privilege(oid, 'CREATE'), pg_has_role(nspowner, 'USAGE') \
     FROM pg_namespace WHERE nspname = ANY ($1::text[])";

const RELATIONS: &str = "SELECT n.nspname::text, c.relname::text, c.relkind::text, pg_get_userbyid(c.relowner)::text, \
     pg_has_role(c.relowner, 'USAGE'), \
     c.relkind IN ('r', 'p') AND coalesce(has_table_privilege(c.oid, 'SELECT') \
       AND has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE') \
       AND has_table_privilege(c.oid, 'DELETE'), false), \
     coalesce(c.reloptions, '{}') || coalesce((SELECT array_agg('toast.' || o) FROM unnest(t.reloptions) AS o), '{}'), \
     coalesce(i.indisvalid, true) \
     FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace \
     LEFT JOIN pg_class AS t ON t.oid = c.reltoastrelid LEFT JOIN pg_index AS i ON i.indexrelid = c.oid \
     WHERE n.nspname = ANY ($1::text[])";

const COLUMNS: &str = "SELECT n.nspname::text, c.relname::text, a.attname::text, \
     format_type(a.atttypid, a.atttypmod), a.attnotnull, a.atthasdef, a.attstorage::text \
     FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid \
     JOIN pg_namespace AS n ON n.oid = c.relnamespace \
     WHERE n.nspname = ANY ($1::text[]) AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped";

const CONSTRAINTS: &str = "SELECT n.nspname::text, c.relname::text, k.conname::text \
     FROM pg_constraint AS k JOIN pg_class AS c ON c.oid = k.conrelid \
     JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = ANY ($1::text[])";

const ROLES: &str = "SELECT rolname::text FROM pg_roles WHERE rolname = ANY ($1::text[])";

const ROLE_SCHEMAS: &str = "SELECT r.rolname::text, n.nspname::text, has_schema_privilege(r.oid, n.oid, 'USAGE'), \
     EXISTS (SELECT FROM pg_default_acl AS d CROSS JOIN LATERAL aclexplode(d.defaclacl) AS x \
       WHERE d.defaclnamespace = n.oid AND d.defaclobjtype = 'r' AND x.grantee = r.oid \
       AND pg_get_userbyid(d.defaclrole) = current_user \
       HAVING count(DISTINCT x.privilege_type) \
         FILTER (WHERE x.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')) = 4) \
     FROM pg_roles AS r CROSS JOIN pg_namespace AS n \
     WHERE r.rolname = ANY ($1::text[]) AND n.nspname = ANY ($2::text[])";

const ROLE_TABLES: &str = "SELECT r.rolname::text, n.nspname::text, c.relname::text \
     FROM pg_roles AS r CROSS JOIN pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace \
     WHERE r.rolname = ANY ($1::text[]) AND n.nspname = ANY ($2::text[]) AND c.relkind IN ('r', 'p') \
     AND has_table_privilege(r.oid, c.oid, 'SELECT') AND has_table_privilege(r.oid, c.oid, 'INSERT') \
     AND has_table_privilege(r.oid, c.oid, 'UPDATE') AND has_table_privilege(r.oid, c.oid, 'DELETE')";

/// Planned only when the table exists.
const STAMP: &str = "SELECT coalesce(value ->> 'version', '?'), coalesce(value ->> 'product', '?'), \
     coalesce(value ->> 'fingerprint', '?') FROM queen.system_state WHERE key = 'schema_version'";

impl Catalogue {
    /// Reads what concerns `schemas` and `roles`, all of it as of one moment: a peer may be building the schema
    /// meanwhile. Its version row is committed before any table but its own is made, so whoever sees tables and no row
    /// sees a database that is not ours.
    pub(crate) async fn read(
        conn: &mut Conn,
        schemas: &[String],
        roles: &[String],
    ) -> Result<Catalogue, SchemaError> {
        let look = SchemaError::database("read the catalogue");
        conn.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await.map_err(look)?;
        let read = Catalogue::read_in_snapshot(conn, schemas, roles).await;
        // A transaction that failed ends with this too.
        let ended = conn.batch("COMMIT").await.map_err(SchemaError::database("read the catalogue"));
        let catalogue = read?;
        ended?;
        Ok(catalogue)
    }

    async fn read_in_snapshot(
        conn: &mut Conn,
        schemas: &[String],
        roles: &[String],
    ) -> Result<Catalogue, SchemaError> {
        let mut catalogue = Catalogue::default();
        catalogue.read_objects(conn, schemas).await.map_err(SchemaError::database("read the catalogue"))?;
        if !roles.is_empty() {
            let read = catalogue.read_roles(conn, schemas, roles).await;
            read.map_err(SchemaError::database("read the rights of the roles"))?;
        }
        let state = Name { schema: "queen".to_owned(), name: "system_state".to_owned() };
        let readable = catalogue.schemas.get("queen").is_some_and(|schema| schema.may_use)
            && catalogue.relations.get(&state).is_some_and(|table| table.may_write);
        if readable {
            let read = catalogue.read_stamp(conn).await;
            read.map_err(SchemaError::database("read the schema version row"))?;
        }
        Ok(catalogue)
    }

    async fn read_objects(&mut self, conn: &mut Conn, schemas: &[String]) -> Result<(), PgError> {
        for row in conn.query(SESSION, &[]).await? {
            self.user = row.try_get(0)?;
            self.database = row.try_get(1)?;
            self.may_create_schemas = row.try_get(2)?;
        }
        for row in conn.query(SCHEMAS, &[&schemas]).await? {
            let schema = Schema {
                owner: row.try_get(1)?,
                may_use: row.try_get(2)?,
                may_create: row.try_get(3)?,
                is_ours: row.try_get(4)?,
            };
            self.schemas.insert(row.try_get(0)?, schema);
        }
        for row in conn.query(RELATIONS, &[&schemas]).await? {
            let relation = Relation {
                kind: row.try_get(2)?,
                owner: row.try_get(3)?,
                is_ours: row.try_get(4)?,
                may_write: row.try_get(5)?,
                options: row.try_get::<_, Vec<String>>(6)?.into_iter().collect(),
                is_valid: row.try_get(7)?,
            };
            self.relations.insert(name(&row)?, relation);
        }
        for row in conn.query(COLUMNS, &[&schemas]).await? {
            let column = Column {
                type_name: row.try_get(3)?,
                not_null: row.try_get(4)?,
                has_default: row.try_get(5)?,
                storage: row.try_get(6)?,
            };
            self.columns.insert((name(&row)?, row.try_get(2)?), column);
        }
        for row in conn.query(CONSTRAINTS, &[&schemas]).await? {
            self.constraints.insert((name(&row)?, row.try_get(2)?));
        }
        Ok(())
    }

    async fn read_roles(
        &mut self,
        conn: &mut Conn,
        schemas: &[String],
        roles: &[String],
    ) -> Result<(), PgError> {
        for row in conn.query(ROLES, &[&roles]).await? {
            self.roles.insert(row.try_get(0)?, Role::default());
        }
        for row in conn.query(ROLE_SCHEMAS, &[&roles, &schemas]).await? {
            let Some(role) = self.roles.get_mut(row.try_get::<_, &str>(0)?) else { continue };
            let schema: String = row.try_get(1)?;
            if row.try_get(2)? {
                role.uses.insert(schema.clone());
            }
            if row.try_get(3)? {
                role.will_write.insert(schema);
            }
        }
        for row in conn.query(ROLE_TABLES, &[&roles, &schemas]).await? {
            let Some(role) = self.roles.get_mut(row.try_get::<_, &str>(0)?) else { continue };
            role.writes.insert(Name { schema: row.try_get(1)?, name: row.try_get(2)? });
        }
        Ok(())
    }

    async fn read_stamp(&mut self, conn: &mut Conn) -> Result<(), PgError> {
        if let Some(row) = conn.query(STAMP, &[]).await?.first() {
            self.stamp = Some(Stamp {
                version: row.try_get(0)?,
                product: row.try_get(1)?,
                fingerprint: row.try_get(2)?,
            });
        }
        Ok(())
    }

    pub(crate) fn is_table(&self, name: &Name) -> bool {
        self.relations.get(name).is_some_and(|relation| matches!(relation.kind.as_str(), "r" | "p"))
    }
}

/// The first two columns.
fn name(row: &Row) -> Result<Name, PgError> {
    Ok(Name { schema: row.try_get(0)?, name: row.try_get(1)? })
}
