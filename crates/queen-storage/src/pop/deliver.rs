//! From claimed segments to messages: decoded, bounded in bytes, damage filed.

use queen_pg::Tid;
use queen_segment::SegmentReader;
use queen_types::{Group, LeaseId, Offset, PartitionId, Timestamp, Uuid};

use super::claim::ClaimedSegment;
use crate::ack::dead_letter::{DeadLetterRow, file};
use crate::{Storage, StorageError, sql};

/// Messages of one segment, ready to be rendered: frames `first..first + frames` of the reader.
#[derive(Debug, Clone)]
pub struct DeliveredSegment {
    /// The decoded segment; payloads are slices of it.
    pub reader: SegmentReader,
    /// First frame delivered.
    pub first: usize,
    /// Frames delivered.
    pub frames: usize,
    /// When it was appended.
    pub created_at: Timestamp,
}

/// What one partition delivers.
#[derive(Debug, Clone)]
pub struct Delivered {
    /// The partition.
    pub partition: PartitionId,
    /// Where the group's cursor lies; `None` after a correction of the lease, which moved it.
    pub row: Option<Tid>,
    /// How often its head has been delivered, from 1.
    pub attempt: u32,
    /// Offset of the last message delivered.
    pub batch_end: Offset,
    /// Its segments in offset order, at least one.
    pub segments: Vec<DeliveredSegment>,
}

/// What a claim comes to.
#[derive(Debug, Clone, Default)]
pub struct Delivery {
    /// In claim order.
    pub partitions: Vec<Delivered>,
    /// Undecodable segments that were filed as dead letters.
    pub damaged: usize,
    /// Messages were claimed, though none may be left to deliver.
    pub claimed: bool,
    /// Partitions whose lease was corrected: something is left there that the claim had counted as taken.
    pub corrected: Vec<PartitionId>,
}

/// What happens to one claimed partition.
struct Plan {
    partition: PartitionId,
    row: Tid,
    attempt: u32,
    segments: Vec<DeliveredSegment>,
    lost: Vec<ClaimedSegment>,
    /// Everything at or below is passed: lost messages at the head.
    committed: Offset,
    /// Last offset that stays leased; below `committed + 1` when nothing does.
    batch_end: Offset,
    /// The lease row says something else.
    changed: bool,
    full: bool,
}

impl Storage {
    /// Decodes what a claim took. Messages beyond `bytes_max` decoded bytes (at least one message is delivered) are
    /// handed back by shortening the lease; an auto-ack claim (`lease` = `None`) is delivered whole. An undecodable
    /// segment is filed as dead letters, offset by offset, and passed, so that it neither blocks nor vanishes.
    ///
    /// # Errors
    /// See [`StorageError`]; the claim stands then, release it.
    pub async fn deliver(
        &self,
        group: &Group,
        lease: Option<&LeaseId>,
        claimed: Vec<ClaimedSegment>,
        bytes_max: usize,
    ) -> Result<Delivery, StorageError> {
        let any = !claimed.is_empty();
        let plans = plan(claimed, bytes_max, lease.is_some());
        let damaged = plans.iter().map(|p| p.lost.len()).sum();
        if damaged > 0 {
            self.file_damage(group, &plans).await?;
        }
        if let Some(lease) = lease {
            self.trim(group, lease, &plans).await?;
        }
        let corrected = plans.iter().filter(|p| p.changed).map(|p| p.partition).collect();
        let partitions = plans
            .into_iter()
            .filter(|p| !p.segments.is_empty())
            .map(|p| Delivered {
                partition: p.partition,
                row: (!p.changed).then_some(p.row),
                attempt: p.attempt,
                batch_end: p.batch_end,
                segments: p.segments,
            })
            .collect();
        Ok(Delivery { partitions, damaged, claimed: any, corrected })
    }

    async fn file_damage(&self, group: &Group, plans: &[Plan]) -> Result<(), StorageError> {
        let mut rows = Vec::new();
        for segment in plans.iter().flat_map(|p| &p.lost) {
            tracing::error!(
                target: "pop", partition = %segment.partition, base_offset = segment.base_offset,
                "a segment is undecodable; its messages are filed as dead letters"
            );
            let offsets = segment.first_offset()..=segment.last_offset();
            rows.extend(offsets.map(|offset| DeadLetterRow::undecodable(segment, group, offset)));
        }
        let mut conn = self.inner.pool.get().await?;
        let mut tx = conn.begin();
        file(&mut tx, &rows).await?;
        tx.commit().await?;
        Ok(())
    }

    async fn trim(&self, group: &Group, lease: &LeaseId, plans: &[Plan]) -> Result<(), StorageError> {
        let mut changed: Vec<&Plan> = plans.iter().filter(|p| p.changed).collect();
        if changed.is_empty() {
            return Ok(());
        }
        changed.sort_unstable_by_key(|p| p.partition);
        let partitions: Vec<Uuid> = changed.iter().map(|p| p.partition.0).collect();
        let committed: Vec<Offset> = changed.iter().map(|p| p.committed).collect();
        let ends: Vec<Offset> = changed.iter().map(|p| p.batch_end).collect();
        let mut conn = self.inner.pool.get().await?;
        conn.execute(sql::POP_TRIM, &[&partitions, &group.as_str(), &lease.as_str(), &committed, &ends])
            .await?;
        Ok(())
    }
}

/// Decides per partition what is delivered, given back and lost. Without a lease the cursor has moved already, so
/// nothing can be given back.
fn plan(claimed: Vec<ClaimedSegment>, bytes_max: usize, leased: bool) -> Vec<Plan> {
    let bytes_max = if leased { bytes_max } else { usize::MAX };
    let mut plans: Vec<Plan> = Vec::new();
    let mut bytes = 0usize;
    let mut delivered = false;
    for segment in claimed {
        if plans.last().is_none_or(|p| p.partition != segment.partition) {
            plans.push(Plan {
                partition: segment.partition,
                row: segment.row,
                attempt: segment.attempt,
                segments: Vec::new(),
                lost: Vec::new(),
                committed: -1,
                batch_end: -1,
                changed: false,
                full: false,
            });
        }
        let Some(plan) = plans.last_mut() else { continue };
        if plan.full || (delivered && bytes >= bytes_max) {
            plan.full = true;
            plan.changed = true;
            continue;
        }
        let readable = SegmentReader::open(&segment.blob)
            .ok()
            .filter(|reader| reader.len() >= segment.first_frame + segment.frames);
        match readable {
            Some(reader) => {
                let room = bytes_max.saturating_sub(bytes);
                let (frames, used) = fitting(&reader, &segment, room, !delivered);
                bytes += used;
                delivered = true;
                plan.batch_end = segment.first_offset() + frames as Offset - 1;
                if frames < segment.frames {
                    plan.full = true;
                    plan.changed = true;
                }
                plan.segments.push(DeliveredSegment {
                    reader,
                    first: segment.first_frame,
                    frames,
                    created_at: segment.created_at,
                });
            }
            // Behind deliverable messages the batch ends here: the next claim meets the damage at its head, and so it is
            // filed once, however often these are redelivered.
            None if leased && !plan.segments.is_empty() => {
                plan.full = true;
                plan.changed = true;
            }
            None => {
                plan.committed = segment.last_offset();
                plan.batch_end = segment.last_offset();
                plan.changed = true;
                plan.lost.push(segment);
            }
        }
    }
    plans
}

/// How many of a segment's frames fit into `room` bytes, and how many bytes they are.
fn fitting(reader: &SegmentReader, segment: &ClaimedSegment, room: usize, first: bool) -> (usize, usize) {
    if reader.decoded_len() <= room {
        return (segment.frames, reader.decoded_len());
    }
    let mut used = 0;
    for (taken, frame) in reader.frames(segment.first_frame, segment.frames).enumerate() {
        let size = frame.as_ref().decoded_len();
        if used + size > room && !(first && taken == 0) {
            return (taken, used);
        }
        used += size;
    }
    (segment.frames, used)
}
