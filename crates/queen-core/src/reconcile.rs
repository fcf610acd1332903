//! What other brokers did, found in the database now and then: the floor under every hint that a broker may not get.

use std::collections::HashMap;
use std::sync::Weak;
use std::time::Duration;

use queen_storage::groups::Repair;
use queen_types::{Group, PartitionName, QueueName, TenantId, Timestamp};
use tokio::time::Instant;

use crate::broker::Inner;
use crate::supervise::Beat;

/// When the first pass comes, unless the interval is shorter.
const FIRST: Duration = Duration::from_secs(5);
/// Between two passes at least while there are pops: one small statement for the whole broker.
const BUSY: Duration = Duration::from_secs(1);
/// How long one pass may take before it counts as late.
const STATEMENT: Duration = Duration::from_secs(60);

type Key = (TenantId, QueueName, Group);

/// The repairs that this broker has acted on. A repair counts as new when its row differs from the one seen last: rows
/// become visible in the order of their commits, so no watermark of their times would do.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    seen: HashMap<Key, (Timestamp, Option<PartitionName>)>,
    /// The first pass only takes note: whatever this broker knows, it read after it started.
    primed: bool,
}

impl Applied {
    /// Those of `rows` that are new; `rows` is what there is, so what is missing from it is forgotten.
    pub(crate) fn fresh(&mut self, rows: Vec<Repair>) -> Vec<Repair> {
        let mut seen = HashMap::with_capacity(rows.len());
        let mut fresh = Vec::new();
        for row in rows {
            let key = (row.tenant, row.queue.clone(), row.group.clone());
            let state = (row.at, row.partition.clone());
            if self.primed && self.seen.get(&key) != Some(&state) {
                fresh.push(row);
            }
            seen.insert(key, state);
        }
        self.seen = seen;
        self.primed = true;
        fresh
    }
}

/// Runs until the broker is gone. `again`: an earlier run of this task failed.
pub(crate) async fn run(inner: Weak<Inner>, every: Duration, again: bool, beat: Beat) {
    // What was applied before is not known any more then; applying it once more costs a walk.
    let mut applied = Applied { primed: again, ..Applied::default() };
    // The first pass comes at once, so that nothing is missed that happens before the second.
    let mut pause = every.min(FIRST);
    loop {
        let Some(broker) = inner.upgrade() else { return };
        beat.within(STATEMENT);
        broker.caches.reconciling();
        if let Err(error) = broker.reconcile(&mut applied).await {
            tracing::debug!(target: "reconcile", %error, "what other brokers did could not be read");
        }
        let caches = broker.caches.clone();
        drop(broker);
        beat.within(pause.max(BUSY));
        let passed = Instant::now();
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            // Pops rely on what may have changed elsewhere.
            () = caches.doubt.notified() => tokio::time::sleep_until(passed + BUSY.min(pause)).await,
        }
        pause = every;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repair(queue: &str, at: i64, partition: Option<&str>) -> Repair {
        Repair {
            tenant: TenantId::DEFAULT,
            queue: QueueName::new(queue).unwrap(),
            group: Group::new("g").unwrap(),
            partition: partition.map(|name| PartitionName::new(name).unwrap()),
            at: Timestamp(at),
        }
    }

    #[test]
    fn a_repair_is_applied_once_whatever_its_time() {
        let mut applied = Applied::default();
        assert_eq!(applied.fresh(vec![repair("a", 5, None)]), [], "what was there before this broker");
        assert_eq!(applied.fresh(vec![repair("a", 5, None)]), []);
        // Committed late, with an older time.
        let late = repair("b", 1, Some("p"));
        assert_eq!(applied.fresh(vec![repair("a", 5, None), late.clone()]), std::slice::from_ref(&late));
        let wider = repair("b", 9, None);
        assert_eq!(applied.fresh(vec![wider.clone()]), std::slice::from_ref(&wider));
        assert_eq!(applied.fresh(vec![repair("a", 5, None), wider]), [repair("a", 5, None)], "it came back");
    }
}
