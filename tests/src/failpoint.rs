//! Faults at a point of a transaction that the test chooses: triggers of the test that refuse a row, fail as a
//! serialization conflict does, or kill their own session.

use tokio_postgres::Client;

/// Where the fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Table of the schema `queen`.
    pub table: &'static str,
    /// When a row of it is written, or when the transaction commits.
    pub at_commit: bool,
}

/// What happens there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A permanent error.
    Refuse,
    /// A passing error, which the server rolls back.
    Conflict,
    /// The session dies.
    Kill,
}

/// How often it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Often {
    /// The first time alone.
    Once,
    /// As long as it is armed.
    Always,
}

impl Fault {
    fn statement(self) -> &'static str {
        match self {
            Fault::Refuse => "RAISE EXCEPTION 'refused by the test' USING ERRCODE = '23514'",
            Fault::Conflict => "RAISE EXCEPTION 'conflict made by the test' USING ERRCODE = '40001'",
            Fault::Kill => "PERFORM pg_catalog.pg_terminate_backend(pg_catalog.pg_backend_pid())",
        }
    }

    /// Whether the same call may be made again in place.
    pub fn passes(self) -> bool {
        self != Fault::Refuse
    }
}

/// Arms the fault for inserts into the table, whether they insert or, on conflict, update.
///
/// # Errors
/// When the database refuses.
pub async fn arm(client: &Client, point: Point, fault: Fault, often: Often) -> anyhow::Result<()> {
    let (table, statement) = (point.table, fault.statement());
    // A sequence counts on when everything else is rolled back.
    let condition = match often {
        Often::Once => "pg_catalog.nextval('public.strikes') = 1",
        Often::Always => "pg_catalog.nextval('public.strikes') > 0",
    };
    let trigger = if point.at_commit {
        format!(
            "CREATE CONSTRAINT TRIGGER strike AFTER INSERT OR UPDATE ON queen.{table}
             DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.strike()"
        )
    } else {
        format!(
            "CREATE TRIGGER strike BEFORE INSERT ON queen.{table} FOR EACH ROW EXECUTE FUNCTION public.strike()"
        )
    };
    let sql = format!(
        "CREATE SEQUENCE public.strikes;
         CREATE FUNCTION public.strike() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN IF {condition} THEN {statement}; END IF; RETURN NEW; END $$;
         {trigger}"
    );
    Ok(client.batch_execute(&sql).await?)
}

/// Takes the fault away; how often it was come by is answered.
///
/// # Errors
/// When nothing is armed or the database refuses.
pub async fn disarm(client: &Client) -> anyhow::Result<i64> {
    let strikes = client
        .query_one("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM public.strikes", &[])
        .await?
        .get(0);
    client.batch_execute("DROP FUNCTION public.strike() CASCADE; DROP SEQUENCE public.strikes").await?;
    Ok(strikes)
}
