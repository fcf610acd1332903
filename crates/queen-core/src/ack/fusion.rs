//! Ack fusion: whole batches wait together and share a commit, as pushes do in [`crate::fusion`].

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::Mutex;
use queen_admission::{Lane, Slot};
use queen_fusion::{Bundle, Coalescer, Item, Limits};
use queen_hotlist::Release;
use queen_storage::ack::{FullAck, FullAcked};
use queen_storage::{Storage, StorageError};
use queen_types::{FailureClass, Group, PartitionId, QueueName, TenantId};
use tokio::sync::oneshot;

use crate::announce::Freed;
use crate::broker::Inner;
use crate::flight::Flight;

/// Cursors of one commit.
const ROWS_MAX: usize = 1000;

/// A batch that its lease holder completes, and whose it is.
#[derive(Debug, Clone)]
pub(crate) struct Full {
    pub(crate) tenant: TenantId,
    pub(crate) queue: QueueName,
    pub(crate) ack: FullAck,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Committed.
    Completed,
    /// The row says no; the other way decides.
    Refused,
    /// Too much is under way; nothing was sent.
    Overloaded,
    /// Nobody knows, or the database did not do it.
    Failed,
}

type Key = (PartitionId, Group);

pub(crate) struct Submission {
    full: Full,
    answer: oneshot::Sender<Verdict>,
}

pub(crate) struct AckFusion {
    waiting: Mutex<Coalescer<Key, Submission>>,
    fuses: bool,
}

impl AckFusion {
    /// With so many flushes in flight at the same time. Without `fuses` each request commits its own.
    pub(crate) fn new(flushes: usize, fuses: bool) -> Self {
        // An item weighs 1, and no two have an id in common.
        let limits = Limits { bundles: flushes, lanes: ROWS_MAX, bytes: ROWS_MAX, lane_ids: 1 };
        AckFusion { waiting: Mutex::new(Coalescer::new(limits)), fuses }
    }

    /// Completes batches; one verdict each, in order, after the commit.
    ///
    /// Dropping the future does not take them back: they are committed, and nobody hears of it.
    pub(crate) async fn complete(&self, inner: &Arc<Inner>, batches: Vec<Full>) -> Vec<Verdict> {
        if !self.fuses {
            let count = batches.len();
            let (weak, storage) = (Arc::downgrade(inner), inner.storage.clone());
            let task = inner.tasks.spawn(async move { flush(&weak, &storage, &batches).await });
            return task.await.unwrap_or_else(|_| vec![Verdict::Failed; count]);
        }
        let mut answers = Vec::with_capacity(batches.len());
        {
            let mut waiting = self.waiting.lock();
            for full in batches {
                let (answer, verdict) = oneshot::channel();
                answers.push(verdict);
                let key = (full.ack.partition, full.ack.group.clone());
                waiting.submit(key, Item { work: Submission { full, answer }, ids: Vec::new(), bytes: 1 });
            }
        }
        fly(inner);
        let mut verdicts = Vec::with_capacity(answers.len());
        for answer in answers {
            // Without an answer the flush has panicked.
            verdicts.push(answer.await.unwrap_or(Verdict::Failed));
        }
        verdicts
    }
}

/// Starts every flush that may fly.
fn fly(inner: &Arc<Inner>) {
    loop {
        let Some(bundle) = inner.ack_fusion.waiting.lock().take() else { return };
        let keys: Vec<Key> = bundle.lanes.iter().map(|lane| lane.key.clone()).collect();
        let flight = Flight::new(inner, move |inner| {
            inner.ack_fusion.waiting.lock().done(&keys);
            fly(inner);
        });
        let storage = inner.storage.clone();
        inner.spawn(async move {
            let (batches, waiting) = fold(bundle);
            let verdicts = flush(&flight.inner, &storage, &batches).await;
            // The next flush may start before the answers of this one are out.
            drop(flight);
            for (answers, verdict) in waiting.into_iter().zip(verdicts) {
                for answer in answers {
                    // A request that went away wants no answer.
                    let _ = answer.send(verdict);
                }
            }
        });
    }
}

/// One row per batch, whoever and however many complete it.
fn fold(bundle: Bundle<Key, Submission>) -> (Vec<Full>, Vec<Vec<oneshot::Sender<Verdict>>>) {
    let mut batches: Vec<Full> = Vec::with_capacity(bundle.lanes.len());
    let mut waiting: Vec<Vec<oneshot::Sender<Verdict>>> = Vec::with_capacity(bundle.lanes.len());
    for lane in bundle.lanes {
        let first = batches.len();
        for Item { work: Submission { full, answer }, .. } in lane.items {
            let same = batches
                .iter()
                .skip(first)
                .position(|b| b.ack.lease == full.ack.lease && b.ack.batch_end == full.ack.batch_end)
                .map(|position| first + position);
            match same.and_then(|i| Some((batches.get_mut(i)?, waiting.get_mut(i)?))) {
                Some((batch, answers)) => {
                    // The one that came last knows best where the row lies.
                    *batch = full;
                    answers.push(answer);
                }
                None => {
                    batches.push(full);
                    waiting.push(vec![answer]);
                }
            }
        }
    }
    (batches, waiting)
}

/// Commits batches together and books what became of each.
async fn flush(inner: &Weak<Inner>, storage: &Storage, batches: &[Full]) -> Vec<Verdict> {
    let admitted = match inner.upgrade() {
        Some(inner) => inner.admission.enter(Lane::Ack, TenantId::DEFAULT).await,
        None => Err(StorageError::NotAdmitted("the broker shuts down".to_owned())),
    };
    let Ok(slot) = admitted else { return vec![Verdict::Overloaded; batches.len()] };
    let acks: Vec<FullAck> = batches.iter().map(|full| full.ack.clone()).collect();
    let outcomes = settle(storage, &slot, &acks).await;
    drop(slot);
    metrics::counter!("queen_batches_fired_total", "op" => "ack").increment(1);
    metrics::counter!("queen_batch_items_fired_total", "op" => "ack").increment(acks.len() as u64);
    if let Some(inner) = inner.upgrade() {
        book(&inner, batches, &outcomes);
    }
    let verdict = |outcome| match outcome {
        Ok(Some(_)) => Verdict::Completed,
        Ok(None) => Verdict::Refused,
        Err(Lost) => Verdict::Failed,
    };
    outcomes.into_iter().map(verdict).collect()
}

/// No verdict of the database; the error has been logged.
#[derive(Debug, Clone, Copy)]
struct Lost;

type Outcome = Result<Option<FullAcked>, Lost>;

/// All at once; if one of them is refused for good, each for itself, so that it fails nobody else.
async fn settle(storage: &Storage, slot: &Slot, acks: &[FullAck]) -> Vec<Outcome> {
    let error = match attempt(storage, slot, acks).await {
        Ok(answers) => return answers.into_iter().map(Ok).collect(),
        Err(error) => error,
    };
    metrics::counter!("queen_db_errors_total", "op" => "ack").increment(1);
    tracing::warn!(target: "ack", %error, batches = acks.len(), "an ack flush failed");
    let is_refused = matches!(error, StorageError::Pg(_)) && error.class() == FailureClass::Permanent;
    if !is_refused || acks.len() < 2 {
        return vec![Err(Lost); acks.len()];
    }
    let mut outcomes = Vec::with_capacity(acks.len());
    for ack in acks {
        let outcome = attempt(storage, slot, std::slice::from_ref(ack)).await;
        outcomes.push(match outcome {
            Ok(answers) => Ok(answers.into_iter().next().flatten()),
            Err(error) => {
                tracing::warn!(target: "ack", %error, partition = %ack.partition, "a batch could not be completed");
                Err(Lost)
            }
        });
    }
    outcomes
}

async fn attempt(
    storage: &Storage,
    slot: &Slot,
    acks: &[FullAck],
) -> Result<Vec<Option<FullAcked>>, StorageError> {
    let mut began = Instant::now();
    let result = match storage.ack_full(acks).await {
        Err(error) if error.is_retryable() => {
            began = Instant::now();
            storage.ack_full(acks).await
        }
        result => result,
    };
    let completed = result.as_ref().map_or(0, |answers| answers.iter().flatten().count());
    if completed > 0 {
        slot.committed_work(began.elapsed(), completed as u64);
    }
    result
}

/// What is remembered of the leases follows the rows, and whoever can claim the partitions next is woken.
fn book(inner: &Inner, batches: &[Full], outcomes: &[Outcome]) {
    let mut freed: HashMap<(TenantId, &QueueName), Vec<Freed<'_>>> = HashMap::new();
    for (full, outcome) in batches.iter().zip(outcomes) {
        let FullAck { partition, group, lease, .. } = &full.ack;
        match outcome {
            Ok(Some(acked)) => {
                let claim = inner.leases.released(lease, *partition);
                let (release, row) = (Release::Covered, Some(acked.row));
                let of_queue = freed.entry((full.tenant, &full.queue)).or_default();
                of_queue.push(Freed { group, partition: *partition, claim, release, row });
            }
            Ok(None) | Err(Lost) => inner.leases.changed(lease, *partition),
        }
    }
    for ((tenant, queue), freed) in freed {
        inner.released(tenant, queue, &freed);
    }
}
