//! Runs one statement a transaction, and waits for locks without ever making others wait long.

use crate::error::{SchemaError, is_lock_failure};
use crate::plan::{Action, Work};
use crate::version::SCHEMA_VERSION;
use queen_pg::{Conn, PgError};
use rand::Rng;
use std::time::Duration;

/// How an apply waits for locks that other sessions hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How long one attempt waits for a lock. 2 s: everybody who comes after it waits behind it.
    pub lock_timeout: Duration,
    /// How often a statement is tried, at least 1. 40, which together with the pauses is about 3 minutes.
    pub attempts: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Patience { lock_timeout: Duration::from_millis(2000), attempts: 40 }
    }
}

const HOLDERS: &str = "SELECT format('pid %s (%s, %s) %s on %s', l.pid, \
       coalesce(nullif(a.application_name, ''), '?'), coalesce(a.state, '?'), l.mode, \
       string_agg(DISTINCT c.relname::text, '/')) \
     FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation JOIN pg_namespace AS n ON n.oid = c.relnamespace \
     LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid \
     WHERE l.granted AND l.locktype = 'relation' AND l.pid <> pg_backend_pid() \
       AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
       AND n.nspname = ANY ($1::text[]) AND c.relkind IN ('r', 'p') \
     GROUP BY l.pid, a.application_name, a.state, l.mode ORDER BY l.pid LIMIT 20";

const STAMP: &str = "INSERT INTO queen.system_state AS s (key, value) VALUES ('schema_version', \
       jsonb_build_object('version', $1::int, 'product', $2::text, 'fingerprint', $3::text)) \
     ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value, updated_at = now()";

/// What the statements of one apply have in common.
pub(crate) struct Runner<'a> {
    pub(crate) patience: Patience,
    pub(crate) product: &'a str,
    pub(crate) fingerprint: &'a str,
    pub(crate) schemas: &'a [String],
}

impl Runner<'_> {
    /// Runs one action, retrying while a lock cannot be had.
    pub(crate) async fn run(&self, conn: &mut Conn, action: &Action) -> Result<(), SchemaError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let Err(error) = self.attempt(conn, action).await else {
                tracing::debug!(file = action.file, object = action.object, "schema statement applied");
                return Ok(());
            };
            let is_lock = is_lock_failure(&error);
            if !is_lock || is_concurrent(action) || attempts >= self.patience.attempts {
                let holders = if is_lock { self.holders(conn).await } else { Vec::new() };
                return Err(SchemaError::Statement {
                    file: action.file,
                    object: action.object.clone(),
                    attempts,
                    source: Box::new(error),
                    holders,
                });
            }
            let pause = pause_after(attempts);
            tracing::info!(
                object = action.object,
                attempts,
                pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
                "a schema statement waits for a lock"
            );
            tokio::time::sleep(pause).await;
        }
    }

    async fn attempt(&self, conn: &mut Conn, action: &Action) -> Result<(), PgError> {
        match &action.work {
            Work::Ddl(sql) => {
                let lock_timeout =
                    if is_concurrent(action) { Duration::ZERO } else { self.patience.lock_timeout };
                conn.batch(&format!("SET lock_timeout = {}", lock_timeout.as_millis())).await?;
                // Building an index takes as long as it takes.
                let deadline = conn.deadline();
                conn.set_deadline(None);
                let result = conn.batch(sql).await;
                conn.set_deadline(deadline);
                result
            }
            Work::Stamp => {
                conn.execute(STAMP, &[&SCHEMA_VERSION, &self.product, &self.fingerprint]).await.map(|_| ())
            }
        }
    }

    async fn holders(&self, conn: &mut Conn) -> Vec<String> {
        let rows = conn.query(HOLDERS, &[&self.schemas]).await.unwrap_or_default();
        rows.iter().filter_map(|row| row.try_get(0).ok()).collect()
    }
}

/// A concurrent index build runs outside any transaction; broken off it would leave an invalid index behind.
fn is_concurrent(action: &Action) -> bool {
    matches!(&action.work, Work::Ddl(sql) if sql.contains(" CONCURRENTLY "))
}

/// 250 ms more each time up to 2 s, and up to half of it on top, so that two appliers do not stay in step.
fn pause_after(attempts: u32) -> Duration {
    let base = Duration::from_millis(250).saturating_mul(attempts).min(Duration::from_secs(2));
    base.mul_f64(1.0 + rand::rng().random_range(0.0..=0.5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_three_seconds_at_most() {
        for attempt in 1..=40 {
            let pause = pause_after(attempt);
            let base = Duration::from_millis(u64::from(250 * attempt).min(2000));
            assert!(pause >= base && pause <= base.mul_f64(1.5), "{attempt}: {pause:?}");
        }
    }
}
