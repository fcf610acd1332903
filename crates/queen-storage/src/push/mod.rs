//! Appending: one routine for every writer, with deduplication and survivors inside.
//!
//! One round locks the partitions, probes and inserts, all in one round trip. A partition some of whose frames are
//! stored already writes nothing in that round; its remaining frames go again in the next. So does a partition that was
//! to be written without a search and turned out to need one. A permanent error of a round over several partitions is
//! pinned on the partitions that cause it by running each alone.

mod insert;
mod known;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use queen_dedup::Coverage;
use queen_segment::{FrameRef, PackedSegment, split};
use queen_types::{FailureClass, MessageId, Offset, PartitionId, TransactionId, Uuid};
use rand::Rng;

use crate::ids::{On, PartitionKey, resolve_or_create};
use crate::{Storage, StorageError};

pub use known::DedupStats;

pub(crate) use insert::{Answers, InsertParams, Outgoing, Via, Written, read_answers, steps};
pub(crate) use known::Known;

/// How often a round that the server rolled back for a passing reason is repeated in place.
const ATTEMPTS: u32 = 3;
/// How often a partition may turn out to be deleted before the push gives up.
const VANISHED_MAX: u32 = 3;

/// Frames for one partition, in order. No two lanes of a push share a partition, and no two frames of a lane a
/// transaction id.
#[derive(Debug, Clone)]
pub struct Lane {
    /// The partition.
    pub key: PartitionKey,
    /// What to append.
    pub frames: Vec<NewFrame>,
}

/// One message to append.
#[derive(Debug, Clone)]
pub struct NewFrame {
    /// Id minted for it.
    pub message_id: MessageId,
    /// Deduplication key.
    pub transaction_id: TransactionId,
    /// Payload bytes.
    pub payload: Bytes,
    /// Trace id.
    pub trace_id: Option<Uuid>,
    /// Authenticated producer.
    pub producer_sub: Option<Arc<str>>,
    /// The payload is an encryption envelope.
    pub encrypted: bool,
}

impl NewFrame {
    pub(crate) fn as_ref(&self) -> FrameRef<'_> {
        FrameRef {
            message_id: self.message_id,
            transaction_id: self.transaction_id.as_str(),
            trace_id: self.trace_id,
            producer_sub: self.producer_sub.as_deref(),
            encrypted: self.encrypted,
            payload: &self.payload,
        }
    }
}

/// What became of one frame.
#[derive(Debug, Clone)]
pub enum FrameVerdict {
    /// Committed.
    Queued {
        /// Its partition.
        partition: PartitionId,
        /// Its offset.
        offset: Offset,
    },
    /// Its transaction id was stored before; nothing was written.
    Duplicate {
        /// Id of the stored message, [`MessageId::ZERO`] when it can no longer be read.
        original: MessageId,
    },
    /// Not stored.
    Failed(Arc<StorageError>),
}

/// What a push came to.
#[derive(Debug, Clone)]
pub struct Pushed {
    /// One verdict per frame, in the order of the lanes.
    pub verdicts: Vec<Vec<FrameVerdict>>,
    /// Round trip of the last call that committed, that call alone; `None` when none did.
    pub commit: Option<Duration>,
}

/// Frames of a lane that are not decided yet.
struct Pending {
    lane: usize,
    frames: Vec<usize>,
    vanished: u32,
    /// Something that was taken for known was not; it has to be searched.
    unclear: bool,
}

/// A frame known to repeat a stored one, whose id is still to be read.
struct Repeat {
    lane: usize,
    frame: usize,
    at: (PartitionId, Offset),
}

/// What one round wrote of each pending lane, and how long its one call took.
struct Round {
    results: Vec<(PartitionId, Vec<Written>)>,
    took: Duration,
}

struct Progress<'a> {
    lanes: &'a [Lane],
    verdicts: Vec<Vec<Option<FrameVerdict>>>,
    repeats: Vec<Repeat>,
    commit: Option<Duration>,
}

impl Progress<'_> {
    fn fail(&mut self, pending: &Pending, error: &Arc<StorageError>) {
        for frame in &pending.frames {
            self.verdicts[pending.lane][*frame] = Some(FrameVerdict::Failed(error.clone()));
        }
    }
}

impl Storage {
    /// Appends the lanes; one verdict per frame, in order. Lanes fail or succeed independently.
    ///
    /// # Cancel safety
    /// A dropped call may or may not have committed; the same transaction ids can be pushed again.
    pub async fn push(&self, lanes: &[Lane]) -> Vec<Vec<FrameVerdict>> {
        self.push_measured(lanes).await.verdicts
    }

    /// As [`Storage::push`], and tells how long its commit took.
    ///
    /// # Cancel safety
    /// As [`Storage::push`].
    pub async fn push_measured(&self, lanes: &[Lane]) -> Pushed {
        let mut progress = Progress {
            lanes,
            verdicts: lanes.iter().map(|lane| vec![None; lane.frames.len()]).collect(),
            repeats: Vec::new(),
            commit: None,
        };
        let mut work: Vec<Pending> = (0..lanes.len())
            .filter(|lane| !lanes[*lane].frames.is_empty())
            .map(|lane| Pending {
                lane,
                frames: (0..lanes[lane].frames.len()).collect(),
                vanished: 0,
                unclear: false,
            })
            .collect();
        // Each round decides at least one frame of every lane that comes back, or counts it as vanished, or sends it to
        // the search.
        while !work.is_empty() {
            work = self.round(&mut progress, work).await;
        }
        self.name_originals(&mut progress).await;
        let lost = Arc::new(StorageError::Misaligned("push left a frame without a verdict"));
        let whole =
            |verdict: Option<FrameVerdict>| verdict.unwrap_or_else(|| FrameVerdict::Failed(lost.clone()));
        let verdicts =
            progress.verdicts.into_iter().map(|lane| lane.into_iter().map(whole).collect()).collect();
        Pushed { verdicts, commit: progress.commit }
    }

    /// One attempt for all pending lanes; returns what has to go again.
    async fn round(&self, progress: &mut Progress<'_>, work: Vec<Pending>) -> Vec<Pending> {
        match self.write_with_retries(progress.lanes, &work).await {
            Ok(Round { results, took }) => {
                progress.commit = Some(took);
                work.into_iter()
                    .zip(results)
                    .filter_map(|(pending, (partition, written))| {
                        settle(self, progress, pending, partition, &written)
                    })
                    .collect()
            }
            Err(error) if error.class() == FailureClass::Permanent && work.len() > 1 => {
                let mut again = Vec::new();
                for pending in work {
                    again.extend(Box::pin(self.round(progress, vec![pending])).await);
                }
                again
            }
            Err(error) => {
                let error = Arc::new(error);
                for pending in &work {
                    progress.fail(pending, &error);
                }
                Vec::new()
            }
        }
    }

    async fn write_with_retries(&self, lanes: &[Lane], work: &[Pending]) -> Result<Round, StorageError> {
        let mut attempt = 1;
        loop {
            match self.write(lanes, work).await {
                Err(error) if error.is_retryable() && attempt < ATTEMPTS => {
                    let pause = rand::rng().random_range(2..20) * u64::from(attempt);
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    async fn write(&self, lanes: &[Lane], work: &[Pending]) -> Result<Round, StorageError> {
        let mut conn = self.inner.pool.get().await?;
        let (ids, fresh) =
            self.ids_of(&mut On::Conn(&mut conn), work.iter().map(|p| &lanes[p.lane].key)).await?;
        self.read_back(&mut conn, ids.iter().filter(|id| !fresh.contains(*id)).copied()).await;
        if conn.is_closed() {
            conn = self.inner.pool.get().await?;
        }
        let mut outgoing = Vec::new();
        let mut counts = Vec::with_capacity(work.len());
        for (pending, partition) in work.iter().zip(&ids) {
            let frames = pending.frames.iter().map(|f| &lanes[pending.lane].frames[*f]);
            let segments = self.pack(frames);
            counts.push(segments.len());
            outgoing.extend(segments.into_iter().map(|segment| Outgoing {
                partition: *partition,
                segment,
                known: Coverage::NONE,
            }));
        }
        let plan = self.inner.known.ask(&mut outgoing, &fresh);
        let via = if work.iter().any(|p| p.unclear) { Via::Search } else { plan.via };
        let params = InsertParams::of(&outgoing, plan.server);
        let (locks, values) = (params.locks(), params.values(via));
        let began = Instant::now();
        let result = conn.transact(&steps(via, &locks, &values)).await.map_err(StorageError::from);
        let took = began.elapsed();
        let answers = result.and_then(|rows| {
            read_answers(via, rows.get(1).ok_or(StorageError::Misaligned("push"))?, outgoing.len())
        });
        let answers = answers.inspect_err(|_| self.inner.known.forget(ids.iter().copied()))?;
        self.inner.known.learn(&outgoing, &answers, via);
        self.inner.marks.opened(answers.opened(&outgoing));
        let mut written = answers.written.into_iter();
        let results =
            ids.into_iter().zip(counts).map(|(id, n)| (id, written.by_ref().take(n).collect())).collect();
        Ok(Round { results, took })
    }

    /// Ids of partitions, created where missing, through the cache; and those that were missing.
    async fn ids_of<'k>(
        &self,
        on: &mut On<'_, '_>,
        keys: impl Iterator<Item = &'k PartitionKey>,
    ) -> Result<(Vec<PartitionId>, HashSet<PartitionId>), StorageError> {
        let keys: Vec<&PartitionKey> = keys.collect();
        let mut fresh = HashSet::new();
        let mut ids: Vec<Option<PartitionId>> = keys.iter().map(|key| self.inner.ids.get(key)).collect();
        let unknown: Vec<usize> = (0..ids.len()).filter(|i| ids[*i].is_none()).collect();
        if !unknown.is_empty() {
            let asked: Vec<&PartitionKey> = unknown.iter().map(|i| keys[*i]).collect();
            for (i, found) in unknown.into_iter().zip(resolve_or_create(on, &asked, "push").await?) {
                self.inner.ids.put(keys[i].clone(), found.id);
                ids[i] = Some(found.id);
                if found.created {
                    self.count_created(keys[i]);
                    fresh.insert(found.id);
                }
            }
        }
        let ids: Option<Vec<PartitionId>> = ids.into_iter().collect();
        Ok((ids.ok_or(StorageError::Misaligned("resolve"))?, fresh))
    }

    /// Packs a run of frames into as many segments as its bounds ask for.
    pub(crate) fn pack<'f>(&self, frames: impl Iterator<Item = &'f NewFrame>) -> Vec<PackedSegment> {
        let frames: Vec<FrameRef<'_>> = frames.map(NewFrame::as_ref).collect();
        let cuts = split(&self.inner.options.limits, frames.iter().map(FrameRef::decoded_len));
        self.with_packer(|packer| {
            cuts.into_iter().map(|cut| packer.pack(frames[cut].iter().copied())).collect()
        })
    }

    /// Reads the ids of the messages that duplicates repeat. One that cannot be read is the zero id, not a failure: the
    /// verdict is certain.
    async fn name_originals(&self, progress: &mut Progress<'_>) {
        let at: Vec<_> = progress.repeats.iter().map(|r| r.at).collect();
        let ids = self.message_ids(&at).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the originals of duplicates could not be read");
            vec![MessageId::ZERO; at.len()]
        });
        for (repeat, original) in progress.repeats.iter().zip(ids) {
            let frame = &progress.lanes[repeat.lane].frames[repeat.frame];
            // Our own id means that an earlier attempt of this very push had been committed after all.
            let verdict = if original == frame.message_id {
                FrameVerdict::Queued { partition: repeat.at.0, offset: repeat.at.1 }
            } else {
                FrameVerdict::Duplicate { original }
            };
            progress.verdicts[repeat.lane][repeat.frame] = Some(verdict);
        }
    }
}

/// Books what one round says of a lane; returns what is left to do for it.
fn settle(
    storage: &Storage,
    progress: &mut Progress<'_>,
    mut pending: Pending,
    partition: PartitionId,
    written: &[Written],
) -> Option<Pending> {
    if written.iter().any(|w| matches!(w, Written::Gone)) {
        storage.inner.ids.forget(&progress.lanes[pending.lane].key);
        pending.vanished += 1;
        if pending.vanished < VANISHED_MAX {
            return Some(pending);
        }
        progress.fail(&pending, &Arc::new(StorageError::Gone("the partition")));
        return None;
    }
    if written.iter().any(|w| matches!(w, Written::Sealed)) {
        progress.fail(&pending, &Arc::new(StorageError::Sealed));
        return None;
    }
    if written.iter().any(|w| matches!(w, Written::Unclear)) {
        // Nothing was written of the partition. The search that follows cannot end here again.
        pending.unclear = true;
        return Some(pending);
    }
    let lane = &progress.lanes[pending.lane];
    let frames = pending.frames.iter().map(|f| lane.frames[*f].as_ref());
    let cuts = split(&storage.inner.options.limits, frames.map(|f| f.decoded_len()));
    let mut left = Vec::new();
    let mut decided = 0;
    for (cut, outcome) in cuts.into_iter().zip(written) {
        let ours = &pending.frames[cut];
        match outcome {
            Written::At(base) => {
                for (i, frame) in ours.iter().enumerate() {
                    let offset = base + i as Offset;
                    progress.verdicts[pending.lane][*frame] =
                        Some(FrameVerdict::Queued { partition, offset });
                }
                decided += ours.len();
            }
            Written::Repeats(repeats) => {
                let repeats: HashMap<usize, Offset> = repeats.iter().copied().collect();
                for (i, frame) in ours.iter().enumerate() {
                    match repeats.get(&i) {
                        Some(offset) => {
                            let at = (partition, *offset);
                            progress.repeats.push(Repeat { lane: pending.lane, frame: *frame, at });
                            decided += 1;
                        }
                        None => left.push(*frame),
                    }
                }
            }
            Written::Gone | Written::Sealed | Written::Unclear => {}
        }
    }
    if left.is_empty() {
        return None;
    }
    if decided == 0 {
        progress.fail(&pending, &Arc::new(StorageError::Misaligned("a push was refused and no frame named")));
        return None;
    }
    Some(Pending { frames: left, ..pending })
}
