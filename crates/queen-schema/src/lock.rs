//! The advisory lock that lets one applier work at a time.

use crate::error::SchemaError;
use queen_pg::Conn;
use std::time::{Duration, Instant};

/// The session advisory lock that an apply holds while it runs DDL.
pub const ADVISORY_LOCK_KEY: i64 = 778_120_010;

const POLL_EVERY: Duration = Duration::from_millis(500);
const TELL_EVERY: Duration = Duration::from_secs(10);

const TRY_LOCK: &str = "SELECT pg_try_advisory_lock($1)";
const UNLOCK: &str = "SELECT pg_advisory_unlock($1)";
const HOLDERS: &str = "SELECT format('pid %s (%s, %s)', l.pid, coalesce(nullif(a.application_name, ''), '?'), \
       coalesce(a.usename::text, '?')) \
     FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid \
     WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND l.database = \
       (SELECT oid FROM pg_database WHERE datname = current_database()) \
       AND (l.classid::bigint << 32 | l.objid::bigint) = $1";

/// Takes the lock by asking again and again. A blocking take would hold a snapshot for as long as it waits, and the
/// peer that holds the lock may be building an index concurrently, which waits for that snapshot: a deadlock.
pub(crate) async fn acquire(conn: &mut Conn, patience: Duration) -> Result<(), SchemaError> {
    let began = Instant::now();
    let mut told = began;
    loop {
        if try_lock(conn).await? {
            return Ok(());
        }
        let waited = began.elapsed();
        if waited >= patience {
            let holders = holders(conn).await;
            return Err(SchemaError::LockWait { key: ADVISORY_LOCK_KEY, waited, holders });
        }
        if told.elapsed() >= TELL_EVERY {
            told = Instant::now();
            let holders = holders(conn).await.join(", ");
            tracing::info!(
                lock = ADVISORY_LOCK_KEY,
                waited_seconds = waited.as_secs(),
                holders,
                "waiting for another session to finish its schema apply"
            );
        }
        tokio::time::sleep(POLL_EVERY.min(patience.saturating_sub(waited))).await;
    }
}

/// Lets the lock go. A session that cannot even do that is closed by its owner, which lets go too.
pub(crate) async fn release(conn: &mut Conn) {
    if let Err(error) = conn.query(UNLOCK, &[&ADVISORY_LOCK_KEY]).await {
        tracing::debug!(%error, "the lock of the schema apply goes with its session");
    }
}

async fn try_lock(conn: &mut Conn) -> Result<bool, SchemaError> {
    let doing = "take the lock of the schema apply";
    let rows = conn.query(TRY_LOCK, &[&ADVISORY_LOCK_KEY]).await.map_err(SchemaError::database(doing))?;
    let taken = rows.first().map(|row| row.try_get(0)).transpose();
    Ok(taken.map_err(|e| SchemaError::database(doing)(e.into()))?.unwrap_or(false))
}

/// For a message only, so a failure is no failure.
async fn holders(conn: &mut Conn) -> Vec<String> {
    let rows = conn.query(HOLDERS, &[&ADVISORY_LOCK_KEY]).await.unwrap_or_default();
    rows.iter().filter_map(|row| row.try_get(0).ok()).collect()
}
