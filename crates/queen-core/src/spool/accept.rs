//! From a push that is not stored to events on disk.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use queen_spool::Event;
use queen_storage::{FrameVerdict, Lane, NewFrame, PartitionKey, StorageError};
use queen_types::{FailureClass, Timestamp};

use super::{Buffer, ordered};

/// What became of one frame of a request.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    /// What the database said, or a failure that is final.
    Decided(FrameVerdict),
    /// It is on disk.
    Buffered,
    /// It is nowhere: neither the database nor the disk took it.
    Refused(String),
}

/// Whether a later attempt at a push that failed may do it, or its outcome is not known.
pub(super) fn may_pass(error: &StorageError) -> bool {
    error.class() != FailureClass::Permanent || matches!(error, StorageError::Misaligned(_))
}

impl Buffer {
    /// Whether a lane has to go behind what is spooled of its partition. If so it counts as spooled from here on, and has
    /// to be.
    pub(crate) fn goes_behind(&self, lane: &Lane) -> bool {
        let Some(keys) = &self.ordered else { return false };
        let mut keys = keys.lock();
        if !keys.has(&lane.key) {
            return false;
        }
        keys.add(lane.key.clone(), lane.frames.len() as u64);
        true
    }

    /// Spools whole lanes.
    pub(crate) async fn take(&self, lanes: &[Lane], counted: bool) -> Vec<Vec<Outcome>> {
        let frames = lanes.iter().flat_map(|lane| lane.frames.iter().map(|frame| (&lane.key, frame)));
        let mut written = self.write(frames.collect(), counted).await.into_iter();
        lanes.iter().map(|lane| written.by_ref().take(lane.frames.len()).collect()).collect()
    }

    /// Spools what of a push failed for a reason that may pass.
    pub(crate) async fn rescue(&self, lanes: &[Lane], verdicts: Vec<Vec<FrameVerdict>>) -> Vec<Vec<Outcome>> {
        let mut lost = Vec::new();
        let mut is_down = false;
        for (lane, verdicts) in lanes.iter().zip(&verdicts) {
            for (frame, verdict) in lane.frames.iter().zip(verdicts) {
                if let Some(error) = passing(verdict) {
                    lost.push((&lane.key, frame));
                    is_down |= !error.is_overload();
                }
            }
        }
        let failures = lost.len() as u64;
        if failures > 0 {
            metrics::counter!("queen_db_errors_total", "op" => "push").increment(failures);
        }
        let mut written = if self.exists() { self.write(lost, false).await } else { Vec::new() }.into_iter();
        if failures > 0 && is_down {
            self.heard(false);
        }
        let settle = |verdict: FrameVerdict| match passing(&verdict) {
            Some(_) => match written.next() {
                Some(outcome) => outcome,
                None => Outcome::Decided(verdict),
            },
            None => Outcome::Decided(verdict),
        };
        let mut settle = settle;
        verdicts.into_iter().map(|lane| lane.into_iter().map(&mut settle).collect()).collect()
    }

    async fn write(&self, frames: Vec<(&PartitionKey, &NewFrame)>, counted: bool) -> Vec<Outcome> {
        let Some(spool) = &self.spool else {
            return frames.iter().map(|_| Outcome::Refused("there is no spool".to_owned())).collect();
        };
        if frames.is_empty() {
            return Vec::new();
        }
        let accepted = now();
        if let Some(keys) = self.ordered.as_ref().filter(|_| !counted) {
            let mut keys = keys.lock();
            frames.iter().for_each(|(key, _)| keys.add((*key).clone(), 1));
        }
        let events = frames.iter().map(|(key, frame)| event(key, frame, accepted)).collect();
        let appending = spool.append(events);
        // Before anything is awaited: a request that goes away leaves its events to the replay. Whatever the replay asks of
        // the spool now comes behind them.
        self.news.notify_one();
        let results = appending.await;
        let outcome = |((key, _), result): (
            &(&PartitionKey, &NewFrame),
            Result<(), queen_spool::Refused>,
        )| match result {
            Ok(()) => Outcome::Buffered,
            Err(refused) => {
                if let Some(keys) = &self.ordered {
                    keys.lock().remove(key, 1);
                }
                Outcome::Refused(refused.to_string())
            }
        };
        let outcomes: Vec<Outcome> = frames.iter().zip(results).map(outcome).collect();
        let buffered = outcomes.iter().filter(|o| matches!(o, Outcome::Buffered)).count() as u64;
        metrics::counter!("queen_spool_written_events_total").increment(buffered);
        metrics::counter!("queen_spool_write_failures_total").increment(outcomes.len() as u64 - buffered);
        outcomes
    }

    /// Books events that left the spool.
    pub(super) fn left<'e>(&self, events: impl Iterator<Item = &'e Event>) {
        if let Some(keys) = &self.ordered {
            let mut keys = keys.lock();
            events.for_each(|event| keys.remove(&ordered::key(event), 1));
        }
    }
}

fn passing(verdict: &FrameVerdict) -> Option<&Arc<StorageError>> {
    match verdict {
        FrameVerdict::Failed(error) if may_pass(error) => Some(error),
        _ => None,
    }
}

fn event(key: &PartitionKey, frame: &NewFrame, accepted: Timestamp) -> Event {
    Event {
        tenant: key.tenant,
        queue: key.queue.clone(),
        partition: key.partition.clone(),
        transaction_id: frame.transaction_id.clone(),
        message_id: Some(frame.message_id),
        trace_id: frame.trace_id,
        producer_sub: frame.producer_sub.clone(),
        encrypted: frame.encrypted,
        accepted_at: Some(accepted),
        payload: frame.payload.clone(),
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
