//! Is the database there? Asked on a connection of its own, bounded, and at most twice a second.

use std::time::{Duration, Instant};

use queen_pg::{Conn, Pool};
use tokio::sync::Mutex;

use crate::Broker;

const PATIENCE: Duration = Duration::from_secs(2);
const TRUSTED_FOR: Duration = Duration::from_millis(500);

#[derive(Default)]
pub(crate) struct Health {
    probe: Mutex<Probe>,
}

#[derive(Default)]
struct Probe {
    conn: Option<Conn>,
    verdict: Option<(Instant, bool)>,
}

impl Health {
    async fn alive(&self, pool: &Pool) -> bool {
        let started = Instant::now();
        // Whoever waits here gets the answer of the one who asks.
        let Ok(mut probe) = tokio::time::timeout(PATIENCE, self.probe.lock()).await else { return false };
        if let Some((at, alive)) = probe.verdict
            && at.elapsed() < TRUSTED_FOR
        {
            return alive;
        }
        let left = PATIENCE.saturating_sub(started.elapsed());
        let alive = tokio::time::timeout(left, ask(pool, &mut probe.conn)).await.unwrap_or(false);
        if !alive {
            probe.conn = None;
        }
        probe.verdict = Some((Instant::now(), alive));
        alive
    }
}

async fn ask(pool: &Pool, kept: &mut Option<Conn>) -> bool {
    if kept.as_ref().is_none_or(Conn::is_closed) {
        *kept = pool.connect(&pool.options().application_name).await.ok();
    }
    match kept {
        Some(conn) => conn.query("SELECT 1", &[]).await.is_ok(),
        None => false,
    }
}

impl Broker {
    /// Whether the database answers. Takes at most 2 s and no connection of the pool.
    pub async fn database_alive(&self) -> bool {
        let alive = self.inner.health.alive(self.inner.storage.pool()).await;
        if alive {
            self.inner.schema.database_seen();
        }
        alive
    }
}
