//! The replay: what the drain decides, done. It sleeps while nothing is spooled, and while push maintenance is on.

use std::hash::{BuildHasher, Hash, RandomState};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use queen_admission::Lane as Admitted;
use queen_spool::{Drain, DrainOptions, Entry, Event, FileReader, Meta, Read, Reason, Spool, Step, Verdict};
use queen_storage::{FrameVerdict, Lane, NewFrame, StorageError};
use queen_types::{FailureClass, MessageId, TenantId};

use super::{Buffer, ordered};
use crate::broker::Inner;
use crate::supervise::Beat;

/// How long a push of the replay may take before it counts as late.
const PUSH: Duration = Duration::from_secs(60);

/// Replays until the broker is gone.
pub(crate) async fn run(inner: Weak<Inner>, beat: Beat) {
    let Some((buffer, spool)) = inner.upgrade().and_then(|inner| {
        let spool = inner.buffer.spool.clone()?;
        Some((inner.buffer.clone(), spool))
    }) else {
        beat.idle();
        return std::future::pending().await;
    };
    let options = DrainOptions { flush: buffer.flush, batch_events: buffer.batch, ..DrainOptions::default() };
    let mut replay = Replay {
        began: Instant::now(),
        drain: Drain::new(options),
        open: None,
        hasher: RandomState::new(),
        options,
        buffer,
        spool,
    };
    while let Some(ready) = may_run(&inner, &mut replay, &beat).await {
        replay.turn(ready, &beat).await;
    }
}

/// Waits until something may be replayed; `None` when the broker is gone.
async fn may_run(inner: &Weak<Inner>, replay: &mut Replay, beat: &Beat) -> Option<Arc<Inner>> {
    loop {
        let strong = inner.upgrade()?;
        if !strong.schema.is_applied() || !strong.modes.is_known() {
            let (schema, maintenance) = (strong.schema.clone(), strong.modes.clone());
            drop(strong);
            beat.idle();
            schema.applied().await;
            maintenance.known().await;
            continue;
        }
        if !strong.modes.push() {
            return Some(strong);
        }
        drop(strong);
        replay.drain.pause();
        beat.idle();
        replay.buffer.hurry.notified().await;
        replay.drain.hurry();
    }
}

struct Replay {
    began: Instant,
    drain: Drain,
    /// The file that is replayed.
    open: Option<Open>,
    hasher: RandomState,
    options: DrainOptions,
    buffer: Arc<Buffer>,
    spool: Arc<Spool>,
}

struct Open {
    name: String,
    reader: FileReader,
    /// Events that were read last; the first has this position.
    first: u64,
    ahead: Vec<Option<Event>>,
    rest: Option<(Vec<u8>, Vec<Vec<u8>>)>,
}

impl Replay {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Does the next step.
    async fn turn(&mut self, inner: Arc<Inner>, beat: &Beat) {
        let was = self.drain.is_healthy();
        if was != self.buffer.is_healthy() {
            self.drain.heard(!was);
        }
        let now = self.now();
        self.buffer.pausing.store(self.drain.is_pausing(now), Ordering::Relaxed);
        match self.drain.step(now) {
            Step::Rest(until) => {
                drop(inner);
                self.buffer.cycles.send_modify(|cycles| *cycles += 1);
                self.rest(until, beat).await;
            }
            Step::List { finalize } => {
                beat.within(PUSH);
                if finalize {
                    self.spool.finalize().await;
                }
                self.drain.listed(self.now(), self.spool.ready());
            }
            Step::Read { file, from } => {
                beat.within(PUSH);
                match self.read(file.clone(), from).await {
                    Ok(read) => self.drain.read(read),
                    Err(error) => self.unreadable(&file, &error),
                }
            }
            Step::Push { file, events } => {
                beat.within(PUSH);
                self.push(&inner, file, &events).await;
            }
            Step::Finish { file, aside } => {
                self.finish(file, aside).await;
                self.drain.finished();
            }
            Step::Move { file } => {
                self.open = None;
                let (spool, name) = (self.spool.clone(), file);
                let error = io::Error::other("it could not be read, however often it was tried");
                let _ = tokio::task::spawn_blocking(move || spool.set_aside(&name, error)).await;
                self.drain.finished();
            }
        }
    }

    async fn rest(&mut self, until: Option<Duration>, beat: &Beat) {
        let Some(until) = until else {
            beat.idle();
            self.buffer.news.notified().await;
            self.drain.news();
            return;
        };
        let pause = until.saturating_sub(self.now());
        beat.within(pause);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.buffer.hurry.notified() => self.drain.hurry(),
        }
    }

    fn unreadable(&mut self, file: &str, error: &io::Error) {
        tracing::warn!(target: "spool", %error, file, "a spool file cannot be read");
        self.open = None;
        self.drain.unreadable(self.now());
    }

    /// Reads on, as much as one push may carry.
    async fn read(&mut self, file: String, from: u64) -> io::Result<Read> {
        let (spool, open, options) = (self.spool.clone(), self.open.take(), self.options);
        let reading = tokio::task::spawn_blocking(move || {
            let mut open = match open {
                Some(open) if open.name == file => open,
                _ => {
                    Open { reader: spool.reader(&file)?, name: file, first: 0, ahead: Vec::new(), rest: None }
                }
            };
            // After a restart of the file, or a failure in it, the position may be behind.
            while open.reader.position() < from {
                if !matches!(open.reader.next_entry()?, Entry::Record(..)) {
                    return Err(io::Error::other("it is shorter than it was"));
                }
            }
            open.first = from;
            open.ahead.clear();
            let (mut sizes, mut bytes) = (Vec::new(), 0);
            let end = loop {
                if sizes.len() >= options.batch_events.max(1) || bytes >= options.batch_bytes {
                    break false;
                }
                match open.reader.next_entry()? {
                    Entry::Record(body, event) => {
                        bytes += body.len();
                        sizes.push(body.len());
                        open.ahead.push(event.ok());
                    }
                    Entry::End => break true,
                    Entry::Torn => {
                        spool.torn();
                        tracing::warn!(target: "spool", file = open.name, "the last record of a spool file was cut off");
                        break true;
                    }
                    Entry::Damaged { rest, salvaged } => {
                        tracing::error!(
                            target: "spool", file = open.name, bytes = rest.len(), salvaged = salvaged.len(),
                            "a spool file is damaged; what follows is kept in quarantine"
                        );
                        open.rest = Some((rest, salvaged));
                        break true;
                    }
                }
            };
            Ok((open, sizes, end))
        });
        let (open, sizes, end) = reading.await.map_err(io::Error::other)??;
        let events =
            open.ahead.iter().zip(sizes).map(|(event, bytes)| self.meta(event.as_ref(), bytes)).collect();
        self.open = Some(open);
        Ok(Read { events, end })
    }

    fn meta(&self, event: Option<&Event>, bytes: usize) -> Meta {
        let Some(event) = event else { return Meta { lane: 0, id: 0, bytes, readable: false } };
        let lane = self.hash((event.tenant, &event.queue, &event.partition));
        Meta { lane, id: self.hash((lane, &event.transaction_id)), bytes, readable: true }
    }

    fn hash(&self, value: impl Hash) -> u64 {
        self.hasher.hash_one(value)
    }

    /// Events by position: those read last from memory, others from the file.
    async fn events(&mut self, file: &str, positions: &[u64]) -> io::Result<Vec<Event>> {
        let no = |what: &str| io::Error::other(what.to_owned());
        let mut open =
            self.open.take().filter(|open| open.name == file).ok_or_else(|| no("it is not open"))?;
        let held = |position: &u64| {
            let at = usize::try_from(position.checked_sub(open.first)?).ok()?;
            open.ahead.get(at).cloned().flatten()
        };
        if let Some(events) = positions.iter().map(held).collect() {
            self.open = Some(open);
            return Ok(events);
        }
        let positions = positions.to_vec();
        let reading = tokio::task::spawn_blocking(move || {
            let mut read = || -> io::Result<Vec<Event>> {
                positions.iter().map(|p| open.reader.again(*p)?.1.map_err(io::Error::other)).collect()
            };
            let events = read();
            (open, events)
        });
        let (open, events) = reading.await.map_err(io::Error::other)?;
        self.open = Some(open);
        events
    }

    async fn push(&mut self, inner: &Arc<Inner>, file: String, positions: &[u64]) {
        let events = match self.events(&file, positions).await {
            Ok(events) => events,
            Err(error) => return self.unreadable(&file, &error),
        };
        let (lanes, places) = lanes(&events);
        let verdicts = match inner.admission.enter(Admitted::Maint, TenantId::DEFAULT).await {
            Err(error) => {
                tracing::debug!(target: "spool", %error, "no slot for the replay");
                vec![Verdict::Transient; events.len()]
            }
            Ok(slot) => {
                let pushed = inner.storage.push_measured(&lanes).await;
                let stored = pushed.verdicts.iter().flatten().filter(|v| queued(v)).count() as u64;
                if let (Some(took), true) = (pushed.commit, stored > 0) {
                    slot.committed_work(took, stored);
                }
                drop(slot);
                crate::push::announce(inner, &lanes, &pushed.verdicts);
                self.judge(inner, &places, &pushed.verdicts).await
            }
        };
        let stored: Vec<&Event> =
            events.iter().zip(&verdicts).filter(|(_, v)| **v == Verdict::Stored).map(|(e, _)| e).collect();
        self.spool.stored(&file, stored.len() as u64);
        self.buffer.drained.fetch_add(stored.len() as u64, Ordering::Relaxed);
        self.buffer.left(stored.into_iter());
        let passing = verdicts.contains(&Verdict::Transient);
        self.buffer.heard(!passing);
        self.drain.pushed(self.now(), verdicts);
    }

    /// What the verdicts of storage mean for each event.
    async fn judge(
        &self,
        inner: &Inner,
        places: &[(usize, usize)],
        verdicts: &[Vec<FrameVerdict>],
    ) -> Vec<Verdict> {
        let (mut queued, mut duplicate) = (0, 0);
        let mut judged = Vec::with_capacity(places.len());
        let mut stamped = None;
        for (lane, frame) in places {
            judged.push(match verdicts.get(*lane).and_then(|lane| lane.get(*frame)) {
                Some(FrameVerdict::Queued { .. }) => {
                    queued += 1;
                    Verdict::Stored
                }
                Some(FrameVerdict::Duplicate { .. }) => {
                    duplicate += 1;
                    Verdict::Stored
                }
                Some(FrameVerdict::Failed(error)) => {
                    if error.class() == FailureClass::Config && stamped.is_none() {
                        // A schema that is not there yet, or is being restored, makes the same error as one that is wrong.
                        stamped = Some(inner.schema.is_applied() && inner.storage.schema_stamped().await);
                    }
                    failure(error, stamped.unwrap_or(true))
                }
                None => Verdict::Transient,
            });
        }
        metrics::counter!("queen_spool_drained_events_total", "result" => "queued").increment(queued);
        metrics::counter!("queen_spool_drained_events_total", "result" => "duplicate").increment(duplicate);
        judged
    }

    async fn finish(&mut self, file: String, aside: Vec<(u64, Reason)>) {
        let open = self.open.take().filter(|open| open.name == file);
        let (mut reader, rest) = open.map_or((None, None), |open| (Some(open.reader), open.rest));
        if !aside.is_empty() {
            for (index, reason) in &aside {
                tracing::error!(
                    target: "spool", event = "spool_quarantined", file, index, sqlstate = reason.sqlstate, error = reason.error,
                    "an accepted message can not be stored and goes to quarantine"
                );
            }
        }
        let (spool, buffer) = (self.spool.clone(), self.buffer.clone());
        let finishing = tokio::task::spawn_blocking(move || {
            if let (Some(reader), true) = (&mut reader, buffer.ordered.is_some()) {
                let gone = aside.iter().filter_map(|(index, _)| reader.again(*index).ok()?.1.ok());
                let gone: Vec<Event> = gone.collect();
                buffer.left(gone.iter());
            }
            let set_aside = spool.status().set_aside;
            if let Err(error) = spool.finish(&file, reader.as_mut(), &aside, rest) {
                tracing::error!(target: "spool", %error, file, "a spool file can be moved nowhere and is passed over");
            }
            let events = spool.status().set_aside - set_aside;
            if events > 0 {
                metrics::counter!("queen_spool_quarantined_events_total").increment(events);
                metrics::counter!("queen_spool_quarantined_files_total").increment(1);
            }
        });
        let _ = finishing.await;
    }
}

fn queued(verdict: &FrameVerdict) -> bool {
    matches!(verdict, FrameVerdict::Queued { .. })
}

/// What a failure means for an event. A complete schema that lacks what a statement needs will not get it by waiting.
fn failure(error: &StorageError, schema_complete: bool) -> Verdict {
    match error.class() {
        FailureClass::Transient => Verdict::Transient,
        FailureClass::Config if !schema_complete => Verdict::Transient,
        FailureClass::Config | FailureClass::Permanent => Verdict::Permanent(Reason {
            sqlstate: error.sqlstate().map(str::to_owned),
            error: error.to_string(),
        }),
    }
}

/// Events as lanes, partitions in the order of their first event; and where each event went.
fn lanes(events: &[Event]) -> (Vec<Lane>, Vec<(usize, usize)>) {
    let mut lanes: Vec<Lane> = Vec::new();
    let mut index = std::collections::HashMap::new();
    let mut places = Vec::with_capacity(events.len());
    for event in events {
        let key = ordered::key(event);
        let lane = *index.entry(key.clone()).or_insert_with(|| {
            lanes.push(Lane { key, frames: Vec::new() });
            lanes.len() - 1
        });
        places.push((lane, lanes[lane].frames.len()));
        lanes[lane].frames.push(NewFrame {
            message_id: event.message_id.unwrap_or_else(MessageId::mint),
            transaction_id: event.transaction_id.clone(),
            payload: event.payload.clone(),
            trace_id: event.trace_id,
            producer_sub: event.producer_sub.clone(),
            encrypted: event.encrypted,
        });
    }
    (lanes, places)
}
