//! The floor under every wake of a parked pop: one statement per interval for all of them, and none while nothing is
//! parked. It notices what no event tells: the expiry of a lease, the end of a delay, a push through another broker.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use queen_storage::pop::Pending;
use queen_types::{Group, QueueId};

use crate::broker::Inner;
use crate::supervise::Beat;
use crate::wait::Gates;

/// The statement is repeated after as many times of what it took: with very many partitions it is rarer.
const PAUSE_FACTOR: u32 = 20;
/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How long one look may take before it counts as late.
const STATEMENT: Duration = Duration::from_secs(10);
/// How often unused hot lists are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(30);

/// Runs until the broker is gone.
pub(crate) async fn run(inner: Weak<Inner>, gates: Arc<Gates>, every: Duration, beat: Beat) {
    let mut pause = every;
    let mut swept = Instant::now();
    loop {
        while gates.is_idle() {
            beat.idle();
            if tokio::time::timeout(SWEEP_EVERY, gates.busy.notified()).await.is_ok() {
                break;
            }
            let Some(inner) = inner.upgrade() else { return };
            sweep(&inner, &mut swept);
        }
        beat.within(pause);
        tokio::time::sleep(pause).await;
        let Some(inner) = inner.upgrade() else { return };
        sweep(&inner, &mut swept);
        let started = Instant::now();
        beat.within(STATEMENT);
        tick(&inner).await;
        pause = started.elapsed().saturating_mul(PAUSE_FACTOR).clamp(every, PAUSE_MAX.max(every));
    }
}

fn sweep(inner: &Inner, swept: &mut Instant) {
    if swept.elapsed() >= SWEEP_EVERY {
        if let Some(idle) = inner.options.hotlist_idle {
            inner.hot.sweep(idle);
        }
        *swept = Instant::now();
    }
}

async fn tick(inner: &Inner) {
    inner.gates.wake_discovery();
    let waiting = inner.gates.waiting();
    if waiting.is_empty() {
        return;
    }
    let pairs: Vec<(QueueId, Group)> = waiting.iter().map(|w| (w.queue, w.group.clone())).collect();
    match inner.storage.ready(&pairs).await {
        Ok(ready) => {
            let mut by_pair: BTreeMap<usize, Vec<Pending>> = BTreeMap::new();
            for (pair, found) in ready {
                by_pair.entry(pair).or_default().push(found);
            }
            for (position, pair) in waiting.iter().enumerate() {
                let found = by_pair.remove(&position).unwrap_or_default();
                if inner.options.hotlist {
                    inner.hot.found(pair.tenant, &pair.queue_name, &pair.group, &found);
                    if !found.is_empty() {
                        // Pops of one partition stand beside the list.
                        inner.gates.claimable_to_others(pair.tenant, &pair.queue_name, &pair.group);
                    }
                } else if !found.is_empty() {
                    inner.gates.claimable(pair.tenant, &pair.queue_name, &pair.group, found.len());
                }
            }
        }
        Err(error) => tracing::debug!(target: "pop", %error, "the floor could not look for work"),
    }
}
