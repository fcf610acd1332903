//! From a database that may not be there to a schema that is in place.
//!
//! Until then the pool is held: whatever asks for a connection fails at once as it does when the database is away, so
//! that nothing reads from, and nothing is written to, a schema that is half built.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use queen_pg::{FailureClass, PgError, Pool};
use queen_schema::ApplyOptions;
use tokio::sync::{Notify, watch};

use crate::broker::Inner;
use crate::supervise::Beat;
use crate::{BrokerOptions, StartError};

/// How long a start waits for another broker that applies the schema.
const SCHEMA_LOCK_WAIT: Duration = Duration::from_secs(600);
/// How long a start that may be degraded waits for the schema.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause after the first attempt that failed; each further one doubles it.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// What a call is told before the schema is in place.
const HELD: &str = "the database was not there yet, or its schema is not applied yet";

/// Where the schema stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Schema {
    /// It is not known to be in place, and is worked on.
    Pending,
    /// It is in place, or is taken as it is.
    Applied,
    /// It cannot be brought into place without somebody acting.
    Refused,
}

/// The schema of one broker's database, as it is known.
pub(crate) struct SchemaGate {
    state: watch::Sender<Schema>,
    refusal: parking_lot::Mutex<Option<StartError>>,
    /// The database was seen: there is no reason to wait for the end of a pause.
    seen: Notify,
}

impl SchemaGate {
    pub(crate) fn new(applied: bool) -> SchemaGate {
        let state = if applied { Schema::Applied } else { Schema::Pending };
        SchemaGate {
            state: watch::Sender::new(state),
            refusal: parking_lot::Mutex::default(),
            seen: Notify::new(),
        }
    }

    pub(crate) fn is_applied(&self) -> bool {
        *self.state.borrow() == Schema::Applied
    }

    /// Waits for the schema, for as long as it takes: what needs its tables begins with this.
    pub(crate) async fn applied(&self) {
        // The sender lives as long as this does, so the wait ends with a value.
        let _ = self.state.subscribe().wait_for(|state| *state == Schema::Applied).await;
    }

    /// Waits until the schema is known never to come by itself, and says why.
    pub(crate) async fn refused(&self) -> StartError {
        let _ = self.state.subscribe().wait_for(|state| *state == Schema::Refused).await;
        let refusal = self.refusal.lock().take();
        match refusal {
            Some(refusal) => refusal,
            // Somebody else has heard it.
            None => std::future::pending().await,
        }
    }

    /// Says that the database answers.
    pub(crate) fn database_seen(&self) {
        if *self.state.borrow() == Schema::Pending {
            self.seen.notify_one();
        }
    }

    /// A pause between two attempts, cut short when the database is seen.
    async fn wait(&self, pause: Duration) {
        let short = pause.min(PAUSE);
        tokio::time::sleep(short).await;
        let _ = tokio::time::timeout(pause.saturating_sub(short), self.seen.notified()).await;
    }

    fn refuse(&self, error: StartError) {
        *self.refusal.lock() = Some(error);
        self.state.send_replace(Schema::Refused);
    }
}

/// An attempt under way.
pub(crate) type Attempt = Pin<Box<dyn Future<Output = Result<(), StartError>> + Send>>;

/// What a start found.
pub(crate) enum Found {
    /// The schema is in place.
    Schema,
    /// It is not; the attempt goes on if it has not failed.
    Nothing(Option<Attempt>),
}

/// The first attempt, with as much patience as a start has.
pub(crate) async fn first(pool: &Pool, options: &BrokerOptions) -> Result<Found, StartError> {
    let mut attempt = attempt(pool.clone(), options.clone());
    if !options.degraded_start {
        return attempt.await.map(|()| Found::Schema);
    }
    match tokio::time::timeout(PATIENCE, &mut attempt).await {
        Ok(Ok(())) => Ok(Found::Schema),
        Ok(Err(error)) if error.may_pass() => {
            tracing::warn!(target: "boot", %error, "starting without the database; the schema is applied when it comes");
            Ok(Found::Nothing(None))
        }
        Ok(Err(error)) => Err(error),
        Err(_) => {
            tracing::warn!(target: "boot", "starting before the schema is in place, which takes its time");
            Ok(Found::Nothing(Some(attempt)))
        }
    }
}

fn attempt(pool: Pool, options: BrokerOptions) -> Attempt {
    Box::pin(async move {
        // Before anything is locked or prepared: both need sessions that stay together.
        pool.refuse_pooler().await.map_err(|error| match error {
            PgError::Pooler => StartError::Config(error.to_string()),
            error => StartError::Connect(error),
        })?;
        if !options.apply_schema {
            return Ok(());
        }
        let apply = ApplyOptions {
            product_version: options.version,
            grant_roles: options.grant_roles,
            mismatch_warn: options.schema_mismatch_warn,
            lock_wait: SCHEMA_LOCK_WAIT,
        };
        let applied = queen_schema::apply(&pool, &apply).await?;
        tracing::info!(
            target: "schema", statements = applied.statements_run, server_version = applied.server_version,
            elapsed_ms = u64::try_from(applied.elapsed.as_millis()).unwrap_or(u64::MAX), "schema applied"
        );
        Ok(())
    })
}

/// Makes the pool refuse whoever asks before the schema is in place.
pub(crate) fn hold(pool: &Pool) {
    pool.hold(HELD);
}

/// Tries until the schema is in place, or until trying again cannot help.
pub(crate) async fn bring_up(
    inner: Weak<Inner>,
    gate: Arc<SchemaGate>,
    mut under_way: Option<Attempt>,
    beat: Beat,
) {
    // An apply waits for locks and builds indexes; how long is not for this task to say.
    beat.idle();
    let mut pause = PAUSE;
    loop {
        let next = match under_way.take() {
            Some(attempt) => attempt,
            None => {
                gate.wait(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
                let Some(inner) = inner.upgrade() else { return };
                attempt(inner.storage.pool().clone(), inner.options.clone())
            }
        };
        let outcome = next.await;
        let Some(inner) = inner.upgrade() else { return };
        match outcome {
            Ok(()) => {
                inner.storage.pool().release();
                inner.schema.state.send_replace(Schema::Applied);
                tracing::info!(target: "boot", "the schema is in place");
                return;
            }
            Err(error) if error.may_pass() => {
                tracing::warn!(target: "boot", %error, retry_in = ?pause, "the schema is not in place yet");
            }
            Err(error) => {
                tracing::error!(target: "boot", %error, "the schema cannot be brought into place");
                inner.schema.refuse(error);
                return;
            }
        }
    }
}

impl StartError {
    /// Whether the same start may succeed later without anybody acting.
    pub fn may_pass(&self) -> bool {
        match self {
            StartError::Config(_) | StartError::Spool(_) => false,
            StartError::Connect(error) => error.class() == FailureClass::Transient,
            StartError::Schema(error) => error.class() == FailureClass::Transient,
        }
    }
}
