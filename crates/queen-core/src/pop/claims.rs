//! Claim fusion: pops that find work at the same time share a statement and a commit. A pop that finds a flight free
//! starts it at once; what arrives meanwhile goes together with the next.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use queen_admission::Lane;
use queen_storage::StorageError;
use queen_storage::pop::{Claim, Claimed};
use queen_types::{Group, PartitionId, TenantId};
use tokio::sync::oneshot;

use super::guard::give_back;
use crate::broker::Inner;
use crate::flight::Flight;
use crate::hot::Guard;

/// Claims of one flight.
const JOBS_MAX: usize = 16;
/// Candidates of one flight, at least one claim's.
const CANDIDATES_MAX: usize = 256;

/// Where a claim's outcome goes.
type Answer = oneshot::Sender<Result<Claimed, Arc<StorageError>>>;

/// A claim on its way, with what it has checked out.
pub(super) struct Job {
    pub(super) claim: Claim,
    pub(super) guard: Option<Guard>,
}

struct Waiting {
    job: Job,
    answer: Answer,
}

/// The claims that wait for a flight.
pub(crate) struct Claims {
    state: Mutex<State>,
    flights_max: usize,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    flying: usize,
}

impl Claims {
    pub(crate) fn new(flights_max: usize) -> Self {
        Claims { state: Mutex::default(), flights_max: flights_max.max(1) }
    }

    /// Runs a claim together with whatever else waits.
    ///
    /// Dropping the future gives back what the claim brings.
    pub(super) async fn run(&self, inner: &Arc<Inner>, job: Job) -> Result<Claimed, Arc<StorageError>> {
        let (answer, claimed) = oneshot::channel();
        self.state.lock().waiting.push_back(Waiting { job, answer });
        fly(inner);
        match claimed.await {
            Ok(result) => result,
            Err(_) => Err(Arc::new(StorageError::Misaligned("a claim ended without an answer"))),
        }
    }

    /// The next flight, when one may start. Claims of one cursor never share one.
    fn take(&self) -> Vec<Waiting> {
        let mut state = self.state.lock();
        if state.flying >= self.flights_max || state.waiting.is_empty() {
            return Vec::new();
        }
        let mut flight: Vec<Waiting> = Vec::new();
        let mut cursors: HashSet<(PartitionId, Group)> = HashSet::new();
        let mut candidates = 0;
        let mut later = VecDeque::new();
        while let Some(next) = state.waiting.pop_front() {
            // Whoever asked is gone: nothing is claimed, and the drop gives back what was checked out.
            if next.answer.is_closed() {
                continue;
            }
            let claim = &next.job.claim;
            let full = flight.len() >= JOBS_MAX
                || (!flight.is_empty() && candidates + claim.candidates.len() > CANDIDATES_MAX);
            let keys = claim.candidates.iter().map(|c| (c.partition, claim.group.clone()));
            if full || keys.clone().any(|key| cursors.contains(&key)) {
                later.push_back(next);
                if full {
                    break;
                }
                continue;
            }
            cursors.extend(keys);
            candidates += claim.candidates.len();
            flight.push(next);
        }
        later.append(&mut state.waiting);
        state.waiting = later;
        if !flight.is_empty() {
            state.flying += 1;
        }
        flight
    }
}

/// Starts every flight that may.
fn fly(inner: &Arc<Inner>) {
    loop {
        let flight = inner.claims.take();
        if flight.is_empty() {
            return;
        }
        let ending = Flight::new(inner, |inner| {
            {
                let mut state = inner.claims.state.lock();
                state.flying = state.flying.saturating_sub(1);
            }
            fly(inner);
        });
        let inner = inner.clone();
        inner.clone().spawn(async move {
            let mut claims = Vec::with_capacity(flight.len());
            let mut asked = Vec::with_capacity(flight.len());
            for Waiting { job, answer } in flight {
                claims.push(job.claim);
                asked.push((job.guard, answer));
            }
            let results = tokio::select! {
                biased;
                results = claim(&inner, &claims) => results,
                // Nobody waits for it any more: the statement is cancelled, and whoever asked gives back what it may
                // have leased all the same.
                () = all_gone(&mut asked) => return,
            };
            // The next flight may start before the answers of this one are out.
            drop(ending);
            metrics::counter!("queen_batches_fired_total", "op" => "pop").increment(1);
            metrics::counter!("queen_batch_items_fired_total", "op" => "pop").increment(claims.len() as u64);
            for (((guard, answer), claim), result) in asked.into_iter().zip(&claims).zip(results) {
                land(&inner, guard, claim, result, answer);
            }
        });
    }
}

/// Claims, once there is a slot, which is given back with the end of the statement.
async fn claim(inner: &Inner, claims: &[Claim]) -> Vec<Result<Claimed, Arc<StorageError>>> {
    let slot = match inner.admission.enter(Lane::Pop, TenantId::DEFAULT).await {
        Ok(slot) => slot,
        Err(error) => {
            let error = Arc::new(error);
            return claims.iter().map(|_| Err(error.clone())).collect();
        }
    };
    let began = Instant::now();
    let results = inner.storage.claim(claims).await;
    let segments = results.iter().flatten().flat_map(|claimed| &claimed.segments);
    let messages: usize = segments.map(|s| s.frames).sum();
    if messages > 0 {
        slot.committed_work(began.elapsed(), messages as u64);
    }
    results
}

/// Ends when everybody who asked went away.
async fn all_gone(asked: &mut [(Option<Guard>, Answer)]) {
    for (_, answer) in asked {
        answer.closed().await;
    }
}

/// Checks in what a claim found and hands it over. Nobody there to take it: it is given back.
fn land(
    inner: &Arc<Inner>,
    guard: Option<Guard>,
    claim: &Claim,
    result: Result<Claimed, Arc<StorageError>>,
    answer: Answer,
) {
    let mut origin = None;
    if let Some(mut guard) = guard {
        origin = guard.claim();
        if let Ok(claimed) = &result {
            guard.note(&claimed.outcomes, claim.lease.is_some().then(|| lease_of(claim)));
        }
    }
    if let Err(Ok(claimed)) = answer.send(result)
        && let Some(lease) = &claim.lease
    {
        let partitions = taken(&claimed);
        if !partitions.is_empty() {
            give_back(inner, claim.group.clone(), lease.clone(), partitions, origin, &[Duration::ZERO]);
        }
    }
}

fn lease_of(claim: &Claim) -> Duration {
    let seconds = claim.candidates.iter().map(|c| c.lease_seconds).min().unwrap_or(0);
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

fn taken(claimed: &Claimed) -> Vec<PartitionId> {
    let mut partitions: Vec<PartitionId> = claimed.segments.iter().map(|s| s.partition).collect();
    partitions.dedup();
    partitions
}
