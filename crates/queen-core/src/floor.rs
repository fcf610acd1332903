//! The floor under every wake of a parked pop: one statement per interval for all of them, and none while nothing is
//! parked. It notices what no event tells: the expiry of a lease, the end of a delay, a push through another broker.

use std::sync::{Arc, Weak};
use std::time::Duration;

use queen_types::{Group, QueueId};
use tokio_util::sync::CancellationToken;

use crate::broker::Inner;
use crate::wait::Gates;

/// Runs until `stop`, or until the broker is gone.
pub(crate) async fn run(inner: Weak<Inner>, gates: Arc<Gates>, stop: CancellationToken, every: Duration) {
    loop {
        if gates.is_idle() {
            tokio::select! {
                () = stop.cancelled() => return,
                () = gates.busy.notified() => {}
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(every) => {}
        }
        let Some(inner) = inner.upgrade() else { return };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tick(&inner) => {}
        }
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
            for (pair, partitions) in ready {
                let Some(pair) = waiting.get(pair) else { continue };
                inner.gates.claimable(pair.tenant, &pair.queue_name, &pair.group, partitions);
            }
        }
        Err(error) => tracing::debug!(target: "pop", %error, "the floor could not look for work"),
    }
}
