//! What a dashboard shows at first, read at most once in two seconds however many tabs ask.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use queen_storage::StorageError;
use queen_types::{TenantId, Timestamp};
use tokio::time::Instant;

use crate::Broker;
use crate::api::{Overview, Span, Summary, WorkerBucket};
use crate::broker::Inner;

/// For so long an answer serves everybody who asks.
const FRESH: Duration = Duration::from_secs(2);
/// A database that does not answer in this time counts as away.
const LIMIT: Duration = Duration::from_secs(2);
/// Points of the series, and how far apart they are.
const POINTS: i64 = 60;
const POINT_SECONDS: i64 = 60;
/// Tenants that are remembered; beyond, those that nobody asked for lately are dropped.
const TENANTS_MAX: usize = 256;
const FORGOTTEN: Duration = Duration::from_secs(60);

/// What is known of each tenant. Its lock is held while it is read, so that whoever asks meanwhile gets the same.
#[derive(Default)]
pub(crate) struct Summaries {
    tenants: Mutex<HashMap<TenantId, Arc<tokio::sync::Mutex<Known>>>>,
}

#[derive(Default)]
struct Known {
    /// The last attempt, and whether the database answered.
    asked: Option<(Instant, bool)>,
    /// The last answer.
    stored: Option<(Instant, Overview, Vec<WorkerBucket>)>,
}

impl Known {
    fn is_recent(&self, limit: Duration) -> bool {
        self.asked.is_some_and(|(at, _)| at.elapsed() < limit)
    }
}

impl Summaries {
    fn of(&self, tenant: TenantId) -> Arc<tokio::sync::Mutex<Known>> {
        let mut tenants = self.tenants.lock();
        if tenants.len() >= TENANTS_MAX && !tenants.contains_key(&tenant) {
            tenants.retain(|_, known| known.try_lock().map_or(true, |known| known.is_recent(FORGOTTEN)));
        }
        Arc::clone(tenants.entry(tenant).or_default())
    }
}

impl Broker {
    /// The stored counters of a tenant and the rates of the last hour, at most two seconds old, with what this broker
    /// knows of itself. While the database is away the last answer stays, and says that it is old.
    ///
    /// # Cancel safety
    /// Safe: the next call reads anew.
    pub async fn summary(&self, tenant: TenantId) -> Summary {
        let inner = &self.inner;
        let known = inner.summaries.of(tenant);
        let mut known = known.lock().await;
        if !known.is_recent(FRESH) {
            let read = tokio::time::timeout(LIMIT, read(inner, tenant)).await;
            let answered = match read {
                Ok(Ok((overview, series))) => {
                    known.stored = Some((Instant::now(), overview, series));
                    true
                }
                Ok(Err(error)) => {
                    tracing::debug!(target: "http", %error, "the summary shows what was known before");
                    false
                }
                Err(_) => false,
            };
            known.asked = Some((Instant::now(), answered));
        }
        let (overview, series) = match &known.stored {
            None => (None, Vec::new()),
            Some((at, overview, series)) => {
                let older = i64::try_from(at.elapsed().as_secs()).unwrap_or(i64::MAX);
                let age_seconds = overview.age_seconds.map(|age| age.saturating_add(older));
                (Some(Overview { age_seconds, ..overview.clone() }), series.clone())
            }
        };
        Summary {
            connected: known.asked.is_some_and(|(_, answered)| answered),
            overview,
            series,
            series_seconds: POINT_SECONDS,
            parked: inner.gates.parked_of(tenant),
        }
    }
}

async fn read(inner: &Inner, tenant: TenantId) -> Result<(Overview, Vec<WorkerBucket>), StorageError> {
    let overview = inner.storage.overview(tenant).await?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
    let from = Timestamp(now.saturating_sub(POINTS * POINT_SECONDS * 1_000_000));
    let span = Span { from, to: Timestamp(now), bucket_seconds: POINT_SECONDS };
    Ok((overview, inner.storage.worker_series(span, None, None).await?.0))
}
