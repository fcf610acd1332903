use crate::catalogue::Catalogue;
use crate::error::SchemaError;
use crate::manifest::{self, Statement};
use crate::plan::{self, Plan};
use crate::run::{Patience, Runner};
use crate::version::{self, SCHEMA_VERSION, Stamp, Verdict};
use crate::{lock, rights};
use queen_pg::{Conn, Pool};
use std::time::{Duration, Instant};

const APPLICATION_NAME: &str = "queen-schema-apply";
const OLDEST_SERVER: u32 = 140_000;
/// Structure, then the grants on it, then the look that finds nothing left.
const PASSES_MAX: usize = 3;

const SERVER: &str = "SELECT current_setting('server_version_num'), current_setting('server_version')";

/// What an apply is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplyOptions {
    /// The version of the product, recorded in a new database.
    pub product_version: String,
    /// Roles that get USAGE, SELECT, INSERT, UPDATE and DELETE on both schemas (`QUEEN_DB_ROLE`).
    pub grant_roles: Vec<String>,
    /// Go on with a database of another shape (`QUEEN_SCHEMA_MISMATCH=warn`).
    pub mismatch_warn: bool,
    /// How long to wait while another session applies.
    pub lock_wait: Duration,
}

impl Default for ApplyOptions {
    fn default() -> Self {
        ApplyOptions {
            product_version: env!("CARGO_PKG_VERSION").to_owned(),
            grant_roles: Vec::new(),
            mismatch_warn: false,
            lock_wait: Duration::from_secs(600),
        }
    }
}

/// What an apply did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applied {
    /// Statements that changed the database; 0 for one that was complete.
    pub statements_run: usize,
    /// `server_version_num`, e.g. 150004.
    pub server_version: u32,
    /// From the first connect to the last answer.
    pub elapsed: Duration,
}

/// Brings a database to the schema of this binary.
#[derive(Debug, Clone)]
pub struct Applier {
    options: ApplyOptions,
    patience: Patience,
}

impl Applier {
    /// An applier with the usual patience.
    pub fn new(options: ApplyOptions) -> Applier {
        Applier { options, patience: Patience::default() }
    }

    /// Changes how long it waits for locks.
    pub fn with_patience(mut self, patience: Patience) -> Applier {
        self.patience = patience;
        self
    }

    /// Applies what is missing, on a session of its own.
    ///
    /// Every statement is a transaction of its own and idempotent. Dropping the future ends the session and with it
    /// the lock; what is done stays, and the next apply completes it.
    ///
    /// # Errors
    /// See [`SchemaError`]; after one the schema may be half in place and must not be served from.
    pub async fn apply(&self, pool: &Pool) -> Result<Applied, SchemaError> {
        let began = Instant::now();
        let (mut conn, server_version) = open(pool).await?;
        let job = Job::new(self)?;
        let mut statements_run = 0;
        let mut survey = job.survey(&mut conn).await?;
        if !survey.plan.actions.is_empty() {
            lock::acquire(&mut conn, self.options.lock_wait).await?;
            let outcome = job.apply_locked(&mut conn).await;
            lock::release(&mut conn).await;
            (statements_run, survey) = outcome?;
        }
        job.warn_about_indexes(&survey.catalogue);
        Ok(Applied { statements_run, server_version, elapsed: began.elapsed() })
    }

    /// What is missing, in words. Changes nothing.
    ///
    /// # Errors
    /// As [`Applier::apply`]; rights that only an apply would need are not looked at.
    pub async fn check(&self, pool: &Pool) -> Result<Vec<String>, SchemaError> {
        let (mut conn, _) = open(pool).await?;
        let job = Job::new(self)?;
        let survey = job.look(&mut conn).await?;
        rights::to_serve(&job.statements, &survey.catalogue)?;
        let missing = survey.plan.actions.iter().map(|action| format!("{} is missing", action.object));
        let invalid = invalid_indexes(&survey.catalogue).map(|name| format!("index {name} is invalid"));
        Ok(missing.chain(survey.plan.differences.iter().cloned()).chain(invalid).collect())
    }
}

/// Connects and refuses servers that are too old, before anything else is asked of them.
async fn open(pool: &Pool) -> Result<(Conn, u32), SchemaError> {
    const DOING: &str = "connect for the schema apply";
    let mut conn = pool.connect(APPLICATION_NAME).await.map_err(SchemaError::database(DOING))?;
    let rows = conn.query(SERVER, &[]).await.map_err(SchemaError::database(DOING))?;
    let text = |column: usize| rows.first().and_then(|row| row.try_get::<_, String>(column).ok());
    let version = text(0).and_then(|number| number.parse::<u32>().ok()).unwrap_or(0);
    if version < OLDEST_SERVER {
        let options = pool.options();
        return Err(SchemaError::ServerTooOld {
            found: text(1).unwrap_or_else(|| "of an unknown version".to_owned()),
            server: format!("{}:{}", options.host, options.port),
        });
    }
    conn.batch("SET statement_timeout = 0").await.map_err(SchemaError::database(DOING))?;
    Ok((conn, version))
}

/// One apply's view of what should be.
struct Job<'a> {
    applier: &'a Applier,
    statements: Vec<Statement>,
    schemas: Vec<String>,
    fingerprint: String,
}

/// One look at what is.
struct Survey {
    catalogue: Catalogue,
    plan: Plan,
}

impl Job<'_> {
    fn new(applier: &Applier) -> Result<Job<'_>, SchemaError> {
        let statements = manifest::statements()?;
        let schemas = plan::schemas(&statements);
        let fingerprint = version::fingerprint_of(&statements);
        Ok(Job { applier, statements, schemas, fingerprint })
    }

    /// Reads the catalogue and decides what is to be done.
    async fn look(&self, conn: &mut Conn) -> Result<Survey, SchemaError> {
        let options = &self.applier.options;
        let catalogue = Catalogue::read(conn, &self.schemas, &options.grant_roles).await?;
        rights::to_serve(&self.statements, &catalogue)?;
        let verdict = self.judge(&catalogue)?;
        let plan = Plan::make(&self.statements, &catalogue, &options.grant_roles, verdict)?;
        Ok(Survey { catalogue, plan })
    }

    /// As [`Job::look`], and refuses what an apply cannot get over.
    async fn survey(&self, conn: &mut Conn) -> Result<Survey, SchemaError> {
        let survey = self.look(conn).await?;
        let differences = &survey.plan.differences;
        if !differences.is_empty() {
            if !self.applier.options.mismatch_warn {
                return Err(SchemaError::Shape { differences: differences.clone() });
            }
            tracing::warn!(
                differences = differences.join("; "),
                "the database has another shape than this version needs"
            );
        }
        rights::to_apply(&survey.plan.actions, &survey.catalogue)?;
        Ok(survey)
    }

    fn judge(&self, catalogue: &Catalogue) -> Result<Verdict, SchemaError> {
        let state = plan::system_state();
        let has_tables = plan::tables(&self.statements)
            .any(|table| *table != state && catalogue.relations.contains_key(table));
        let own = Stamp {
            version: SCHEMA_VERSION.to_string(),
            product: self.applier.options.product_version.clone(),
            fingerprint: self.fingerprint.clone(),
        };
        let found = catalogue.stamp.as_ref();
        let tolerant = self.applier.options.mismatch_warn;
        let verdict = version::judge(found, has_tables, &self.fingerprint, tolerant)
            .map_err(|found| SchemaError::Mismatch { found, own: own.to_string() })?;
        if matches!(verdict, Verdict::Tolerated | Verdict::Newer) {
            let found = found.map_or_else(|| "nobody known".to_owned(), Stamp::to_string);
            tracing::warn!(found, own = %own, "the database was built by another version; going on as told");
        }
        Ok(verdict)
    }

    /// Under the lock: looks again, since a peer may have done it all in the meantime, and works until nothing is
    /// left.
    async fn apply_locked(&self, conn: &mut Conn) -> Result<(usize, Survey), SchemaError> {
        let runner = Runner {
            patience: self.applier.patience,
            product: &self.applier.options.product_version,
            fingerprint: &self.fingerprint,
            schemas: &self.schemas,
        };
        let mut statements_run = 0;
        for _ in 0..PASSES_MAX {
            let survey = self.survey(conn).await?;
            if survey.plan.actions.is_empty() {
                return Ok((statements_run, survey));
            }
            for action in &survey.plan.actions {
                runner.run(conn, action).await?;
                statements_run += 1;
            }
        }
        let survey = self.survey(conn).await?;
        for action in &survey.plan.actions {
            // Somebody undoes it as fast as it is done.
            tracing::warn!(object = action.object, "still missing after the schema apply");
        }
        Ok((statements_run, survey))
    }

    fn warn_about_indexes(&self, catalogue: &Catalogue) {
        for index in invalid_indexes(catalogue) {
            tracing::warn!(%index, "invalid index: drop it, and the next start builds it anew");
        }
    }
}

fn invalid_indexes(catalogue: &Catalogue) -> impl Iterator<Item = &manifest::Name> {
    catalogue.relations.iter().filter(|(_, relation)| !relation.is_valid).map(|(name, _)| name)
}
