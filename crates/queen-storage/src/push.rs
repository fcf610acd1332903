//! Appending: one routine for every writer, with deduplication and survivors inside.
//!
//! One round locks the partitions, probes and inserts, all in one round trip. A partition some of whose frames are
//! stored already writes nothing in that round; its remaining frames go again in the next. A permanent error of a round
//! over several partitions is pinned on the partitions that cause it by running each alone.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use queen_pg::{Row, step};
use queen_segment::{FrameRef, PackedSegment, split};
use queen_types::{FailureClass, MessageId, Offset, PartitionId, TransactionId, Uuid};
use rand::Rng;

use crate::ids::{On, PartitionKey, resolve_or_create};
use crate::{Storage, StorageError, sql};

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

/// A packed segment on its way into a partition.
pub(crate) struct Outgoing {
    pub(crate) partition: PartitionId,
    pub(crate) segment: PackedSegment,
    /// No hash of the segment occurs at or below this offset; -1 vouches for nothing.
    pub(crate) vouched: Offset,
}

/// What the insert statement says of one segment.
pub(crate) enum Written {
    /// Stored from this offset on.
    At(Offset),
    /// Not stored: these frames of the segment repeat stored ones at these offsets. Empty when another segment of the
    /// partition was the reason.
    Repeats(Vec<(usize, Offset)>),
    /// Not stored: the queue takes only encrypted payloads.
    Sealed,
    /// The partition does not exist.
    Gone,
}

/// Whether the frames on their way are encryption envelopes; nothing encrypts yet.
pub(crate) const ENCRYPTED: bool = false;

/// Binds outgoing segments to the parameters of `push/lock.sql` and `push/insert.sql`.
pub(crate) struct InsertParams<'a> {
    pub(crate) lock: Vec<Uuid>,
    pub(crate) partitions: Vec<Uuid>,
    pub(crate) frames: Vec<i32>,
    pub(crate) hashes: Vec<&'a [u8]>,
    pub(crate) blobs: Vec<&'a [u8]>,
    pub(crate) vouched: Vec<Offset>,
}

impl<'a> InsertParams<'a> {
    pub(crate) fn of(outgoing: &'a [Outgoing]) -> Self {
        let mut lock: Vec<Uuid> = outgoing.iter().map(|o| o.partition.0).collect();
        lock.sort_unstable();
        lock.dedup();
        InsertParams {
            lock,
            partitions: outgoing.iter().map(|o| o.partition.0).collect(),
            frames: outgoing.iter().map(|o| i32::try_from(o.segment.count).unwrap_or(i32::MAX)).collect(),
            hashes: outgoing.iter().map(|o| o.segment.hashes.as_slice()).collect(),
            blobs: outgoing.iter().map(|o| o.segment.blob.as_slice()).collect(),
            vouched: outgoing.iter().map(|o| o.vouched).collect(),
        }
    }
}

pub(crate) fn read_written(rows: &[Row], segments: usize) -> Result<Vec<Written>, StorageError> {
    let mut written: Vec<Written> = (0..segments).map(|_| Written::Gone).collect();
    for row in rows {
        let index: i32 = row.get(0);
        let slot = usize::try_from(index).ok().and_then(|i| written.get_mut(i));
        let slot = slot.ok_or(StorageError::Misaligned("push"))?;
        let base: Option<Offset> = row.get(2);
        *slot = match base {
            Some(base) => Written::At(base),
            None if row.get(5) => Written::Sealed,
            None => {
                let frames: Vec<i32> = row.get::<_, Option<_>>(3).unwrap_or_default();
                let originals: Vec<Offset> = row.get::<_, Option<_>>(4).unwrap_or_default();
                let frames = frames.into_iter().map(|f| usize::try_from(f).unwrap_or(usize::MAX));
                Written::Repeats(frames.zip(originals).collect())
            }
        };
    }
    Ok(written)
}

/// Frames of a lane that are not decided yet.
struct Pending {
    lane: usize,
    frames: Vec<usize>,
    vanished: u32,
}

/// A frame known to repeat a stored one, whose id is still to be read.
struct Repeat {
    lane: usize,
    frame: usize,
    at: (PartitionId, Offset),
}

struct Progress<'a> {
    lanes: &'a [Lane],
    verdicts: Vec<Vec<Option<FrameVerdict>>>,
    repeats: Vec<Repeat>,
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
        let mut progress = Progress {
            lanes,
            verdicts: lanes.iter().map(|lane| vec![None; lane.frames.len()]).collect(),
            repeats: Vec::new(),
        };
        let mut work: Vec<Pending> = (0..lanes.len())
            .filter(|lane| !lanes[*lane].frames.is_empty())
            .map(|lane| Pending { lane, frames: (0..lanes[lane].frames.len()).collect(), vanished: 0 })
            .collect();
        // Each round decides at least one frame of every lane that comes back, or counts it as vanished.
        while !work.is_empty() {
            work = self.round(&mut progress, work).await;
        }
        self.name_originals(&mut progress).await;
        let lost = Arc::new(StorageError::Misaligned("push left a frame without a verdict"));
        let whole =
            |verdict: Option<FrameVerdict>| verdict.unwrap_or_else(|| FrameVerdict::Failed(lost.clone()));
        progress.verdicts.into_iter().map(|lane| lane.into_iter().map(whole).collect()).collect()
    }

    /// One attempt for all pending lanes; returns what has to go again.
    async fn round(&self, progress: &mut Progress<'_>, work: Vec<Pending>) -> Vec<Pending> {
        match self.write_with_retries(progress.lanes, &work).await {
            Ok(results) => work
                .into_iter()
                .zip(results)
                .filter_map(|(pending, (partition, written))| {
                    settle(self, progress, pending, partition, &written)
                })
                .collect(),
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

    async fn write_with_retries(
        &self,
        lanes: &[Lane],
        work: &[Pending],
    ) -> Result<Vec<(PartitionId, Vec<Written>)>, StorageError> {
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

    async fn write(
        &self,
        lanes: &[Lane],
        work: &[Pending],
    ) -> Result<Vec<(PartitionId, Vec<Written>)>, StorageError> {
        let mut conn = self.inner.pool.get().await?;
        let ids = self.ids_of(&mut On::Conn(&mut conn), work.iter().map(|p| &lanes[p.lane].key)).await?;
        let mut outgoing = Vec::new();
        let mut counts = Vec::with_capacity(work.len());
        for (pending, partition) in work.iter().zip(&ids) {
            let frames = pending.frames.iter().map(|f| &lanes[pending.lane].frames[*f]);
            let segments = self.pack(frames);
            counts.push(segments.len());
            outgoing.extend(segments.into_iter().map(|segment| Outgoing {
                partition: *partition,
                segment,
                vouched: -1,
            }));
        }
        let params = InsertParams::of(&outgoing);
        let answers = conn
            .transact(&[
                step(sql::PUSH_LOCK, &[&params.lock]),
                step(
                    sql::PUSH_INSERT,
                    &[
                        &params.partitions,
                        &params.frames,
                        &params.hashes,
                        &params.blobs,
                        &params.vouched,
                        &ENCRYPTED,
                    ],
                ),
            ])
            .await?;
        let rows = answers.get(1).ok_or(StorageError::Misaligned("push"))?;
        let mut written = read_written(rows, outgoing.len())?.into_iter();
        Ok(ids.into_iter().zip(counts).map(|(id, n)| (id, written.by_ref().take(n).collect())).collect())
    }

    /// Ids of partitions, created where missing, through the cache.
    async fn ids_of<'k>(
        &self,
        on: &mut On<'_, '_>,
        keys: impl Iterator<Item = &'k PartitionKey>,
    ) -> Result<Vec<PartitionId>, StorageError> {
        let keys: Vec<&PartitionKey> = keys.collect();
        let mut ids: Vec<Option<PartitionId>> = keys.iter().map(|key| self.inner.ids.get(key)).collect();
        let unknown: Vec<usize> = (0..ids.len()).filter(|i| ids[*i].is_none()).collect();
        if !unknown.is_empty() {
            let asked: Vec<&PartitionKey> = unknown.iter().map(|i| keys[*i]).collect();
            for (i, id) in unknown.into_iter().zip(resolve_or_create(on, &asked, "push").await?) {
                self.inner.ids.put(keys[i].clone(), id);
                ids[i] = Some(id);
            }
        }
        ids.into_iter().map(|id| id.ok_or(StorageError::Misaligned("resolve"))).collect()
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
            Written::Gone | Written::Sealed => {}
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
