//! Push fusion: the driver of [`queen_fusion::Coalescer`]. Requests hand in their frames and wait; whoever finds a
//! bundle free to fly starts it as a task of its own, so that a request that goes away takes nobody down with it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use queen_admission::Lane as Admitted;
use queen_fusion::{Bundle, Coalescer, Item, Limits};
use queen_pg::PgError;
use queen_segment::TxnHash;
use queen_storage::{DedupStats, FrameVerdict, Lane, NewFrame, PartitionKey, Storage, StorageError};
use queen_types::TenantId;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::broker::Inner;
use crate::flight::Flight;

/// Bytes that a frame needs beside its payload and its key while it waits.
const FRAME_OVERHEAD: usize = 200;
/// How much longer than a statement a request waits for its verdicts.
const GRACE: Duration = Duration::from_secs(5);

/// Frames of one request for one partition, and where their verdicts go.
pub(crate) struct Submission {
    frames: Vec<NewFrame>,
    answer: oneshot::Sender<Vec<FrameVerdict>>,
}

pub(crate) struct Fusion {
    waiting: Mutex<Coalescer<PartitionKey, Submission>>,
    bytes_max: usize,
}

impl Fusion {
    pub(crate) fn new(limits: Limits, bytes_max: usize) -> Self {
        Fusion { waiting: Mutex::new(Coalescer::new(limits)), bytes_max }
    }

    /// Whether nothing waits and nothing flies.
    pub(crate) fn is_idle(&self) -> bool {
        let waiting = self.waiting.lock();
        waiting.flying() == 0 && waiting.waiting_bytes() == 0
    }

    /// Appends lanes together with whatever else waits; one verdict per frame.
    ///
    /// Dropping the future does not take the frames back: they are stored, and nobody hears of it.
    pub(crate) async fn append(&self, inner: &Arc<Inner>, lanes: Vec<Lane>) -> Vec<Vec<FrameVerdict>> {
        let mut answers = Vec::with_capacity(lanes.len());
        {
            let mut waiting = self.waiting.lock();
            for lane in lanes {
                let bytes = lane.frames.iter().map(weight).sum();
                if waiting.waiting_bytes() + bytes > self.bytes_max && waiting.waiting_bytes() > 0 {
                    answers.push(Err(lane.frames.len()));
                    continue;
                }
                let ids = lane.frames.iter().map(|f| identity(&f.transaction_id)).collect();
                let (answer, verdicts) = oneshot::channel();
                answers.push(Ok((verdicts, lane.frames.len())));
                waiting
                    .submit(lane.key, Item { work: Submission { frames: lane.frames, answer }, ids, bytes });
            }
        }
        fly(inner);
        let mut verdicts = Vec::with_capacity(answers.len());
        let patience = inner.options.pg.statement_timeout + GRACE;
        let deadline = Instant::now() + patience;
        for answer in answers {
            verdicts.push(match answer {
                Err(frames) => failed(frames, StorageError::Overloaded { waiting_max: self.bytes_max }),
                Ok((verdicts, frames)) => match tokio::time::timeout_at(deadline, verdicts).await {
                    Ok(Ok(verdicts)) => verdicts,
                    Ok(Err(_)) => {
                        failed(frames, StorageError::Misaligned("a push bundle ended without a verdict"))
                    }
                    // It is stored late, or not at all; its transaction id tells which when it is pushed again.
                    Err(_) => failed(frames, StorageError::Pg(PgError::Timeout { after: patience })),
                },
            });
        }
        verdicts
    }
}

fn weight(frame: &NewFrame) -> usize {
    frame.payload.len() + frame.transaction_id.as_str().len() + FRAME_OVERHEAD
}

fn identity(transaction_id: &queen_types::TransactionId) -> u128 {
    u128::from_be_bytes(TxnHash::of(transaction_id.as_str().as_bytes()).0)
}

fn failed(frames: usize, error: StorageError) -> Vec<FrameVerdict> {
    let error = Arc::new(error);
    (0..frames).map(|_| FrameVerdict::Failed(error.clone())).collect()
}

/// Starts every bundle that may fly.
fn fly(inner: &Arc<Inner>) {
    loop {
        let Some(bundle) = inner.fusion.waiting.lock().take() else { return };
        let keys: Vec<PartitionKey> = bundle.lanes.iter().map(|lane| lane.key.clone()).collect();
        let flight = Flight::new(inner, move |inner| {
            inner.fusion.waiting.lock().done(&keys);
            fly(inner);
        });
        let storage = inner.storage.clone();
        inner.spawn(async move {
            let (lanes, answers) = unpack(bundle);
            let verdicts = append(&flight.inner, &storage, &lanes).await;
            metrics::counter!("queen_batches_fired_total", "op" => "push").increment(1);
            metrics::counter!("queen_batch_items_fired_total", "op" => "push")
                .increment(lanes.iter().map(|lane| lane.frames.len() as u64).sum());
            record_dedup(&storage.dedup_stats());
            if let Some(inner) = flight.inner.upgrade() {
                if verdicts.iter().flatten().any(|verdict| matches!(verdict, FrameVerdict::Queued { .. })) {
                    inner.buffer.heard(true);
                }
                crate::push::announce(&inner, &lanes, &verdicts);
            }
            // The next bundle may start before the answers of this one are out.
            drop(flight);
            answer(answers, verdicts);
        });
    }
}

/// Writes a bundle, once it has a slot; the slot is given back before anybody hears of it.
async fn append(inner: &Weak<Inner>, storage: &Storage, lanes: &[Lane]) -> Vec<Vec<FrameVerdict>> {
    let admitted = match inner.upgrade() {
        Some(inner) => inner.admission.enter(Admitted::Push, TenantId::DEFAULT).await,
        None => Err(StorageError::NotAdmitted("the broker shuts down".to_owned())),
    };
    let slot = match admitted {
        Ok(slot) => slot,
        Err(error) => {
            let error = Arc::new(error);
            let fail =
                |lane: &Lane| lane.frames.iter().map(|_| FrameVerdict::Failed(error.clone())).collect();
            return lanes.iter().map(fail).collect();
        }
    };
    let pushed = storage.push_measured(lanes).await;
    let queued = |verdict: &&FrameVerdict| matches!(verdict, FrameVerdict::Queued { .. });
    let messages = pushed.verdicts.iter().flatten().filter(queued).count() as u64;
    if let (Some(took), true) = (pushed.commit, messages > 0) {
        slot.committed_work(took, messages);
    }
    pushed.verdicts
}

fn record_dedup(stats: &DedupStats) {
    metrics::gauge!("queen_dedup_cache_bytes").set(stats.bytes as f64);
    for (search, segments) in [("none", stats.clear), ("part", stats.searched), ("whole", stats.unknown)] {
        metrics::counter!("queen_dedup_segments_total", "search" => search).absolute(segments);
    }
}

/// Where the verdicts of one lane go: to each submission those of its frames.
type Answers = Vec<Vec<(usize, oneshot::Sender<Vec<FrameVerdict>>)>>;

fn unpack(bundle: Bundle<PartitionKey, Submission>) -> (Vec<Lane>, Answers) {
    let mut lanes = Vec::with_capacity(bundle.lanes.len());
    let mut answers = Vec::with_capacity(bundle.lanes.len());
    for lane in bundle.lanes {
        let mut frames = Vec::new();
        let mut waiting = Vec::with_capacity(lane.items.len());
        for Item { work, .. } in lane.items {
            waiting.push((work.frames.len(), work.answer));
            frames.extend(work.frames);
        }
        lanes.push(Lane { key: lane.key, frames });
        answers.push(waiting);
    }
    (lanes, answers)
}

fn answer(answers: Answers, verdicts: Vec<Vec<FrameVerdict>>) {
    for (waiting, verdicts) in answers.into_iter().zip(verdicts) {
        let mut verdicts = verdicts.into_iter();
        for (count, sender) in waiting {
            // A request that went away wants no answer.
            let _ = sender.send(verdicts.by_ref().take(count).collect());
        }
    }
}
