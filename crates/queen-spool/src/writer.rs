//! The one thread that appends. Whatever is queued shares a sync, and nobody hears of an event before it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

use parking_lot::Mutex;
use queen_types::{Timestamp, Uuid};
use tokio::sync::oneshot;

use crate::disk::{Disk, DiskFile};
use crate::error::Refused;
use crate::event::Event;
use crate::format::{Header, frame};
use crate::ledger::{Held, Ledger};
use crate::name::{ACTIVE, Names, READY};
use crate::options::{FsyncMode, SpoolOptions};
use crate::place::{Place, probe};

/// What the thread, the readers and the handle share.
pub(crate) struct Shared {
    pub(crate) place: Place,
    pub(crate) options: SpoolOptions,
    pub(crate) instance: Uuid,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) ledger: Mutex<Ledger>,
    pub(crate) writable: AtomicBool,
}

/// What became of each event of a job.
pub(crate) type Appended = Vec<Result<(), Refused>>;

pub(crate) enum Job {
    Append {
        events: Vec<Event>,
        reply: oneshot::Sender<Appended>,
    },
    /// Close the file that is written, if there is one with events.
    Finalize {
        reply: oneshot::Sender<()>,
    },
    /// Try whether the directory can be written.
    Probe {
        reply: oneshot::Sender<bool>,
    },
    Stop,
}

/// The file that is being written.
struct Active {
    file: Box<dyn DiskFile>,
    stem: String,
    held: Held,
    /// Bytes of it that hold whole records.
    good: u64,
    /// Bytes and events of it that are synced, or need not be.
    synced: u64,
    synced_events: u64,
}

/// An answer that waits for a sync.
struct Owed {
    reply: oneshot::Sender<Appended>,
    results: Appended,
}

pub(crate) struct Writer {
    shared: Arc<Shared>,
    names: Names,
    active: Option<Active>,
    owed: Vec<Owed>,
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>) -> Writer {
        let newest = shared.ledger.lock().ready.keys().next_back().cloned();
        Writer { shared, names: Names::after(newest.as_deref()), active: None, owed: Vec::new() }
    }

    /// Works until it is told to stop, or nobody can tell it anything any more.
    pub(crate) fn run(mut self, jobs: &Receiver<Job>) {
        loop {
            let job = match jobs.recv_timeout(self.shared.options.probe_every) {
                Ok(job) => job,
                Err(RecvTimeoutError::Timeout) => {
                    self.probe();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return self.finalize(),
            };
            if self.work_off(job, jobs) {
                return self.finalize();
            }
        }
    }

    /// One round: the job and what is queued behind it, then a sync, then the answers. True at the end.
    fn work_off(&mut self, first: Job, jobs: &Receiver<Job>) -> bool {
        let began = Instant::now();
        let mut next = Some(first);
        while let Some(job) = next {
            match job {
                Job::Append { events, reply } => {
                    let results = self.append(events);
                    self.owed.push(Owed { reply, results });
                    let gap = self.shared.options.fsync_gap;
                    if self.shared.options.fsync == FsyncMode::Batch && began.elapsed() >= gap {
                        break;
                    }
                }
                Job::Finalize { reply } => {
                    self.finalize();
                    let _ = reply.send(());
                }
                Job::Probe { reply } => {
                    let _ = reply.send(self.probe());
                }
                Job::Stop => return true,
            }
            next = jobs.try_recv().ok();
        }
        self.settle();
        false
    }

    /// Syncs, and answers whoever waits for it.
    fn settle(&mut self) {
        let synced = self.sync();
        for mut owed in self.owed.drain(..) {
            if let Err(refused) = &synced {
                // What was cut off again is nowhere.
                refuse(&mut owed.results, refused);
            }
            let accepted = owed.results.iter().filter(|r| r.is_ok()).count() as u64;
            let refused = owed.results.len() as u64 - accepted;
            {
                let mut ledger = self.shared.ledger.lock();
                ledger.written += accepted;
                ledger.refused += refused;
            }
            let _ = owed.reply.send(owed.results);
        }
    }

    fn append(&mut self, events: Vec<Event>) -> Appended {
        let allowed = self.room();
        let always = self.shared.options.fsync == FsyncMode::Always;
        let mut results = Vec::with_capacity(events.len());
        let mut buffer = Vec::new();
        // Events whose records are in the buffer, with the times they were accepted at.
        let mut buffered: Vec<Option<Timestamp>> = Vec::new();
        for event in events {
            if let Err(refused) = &allowed {
                results.push(Err(refused.clone()));
                continue;
            }
            let body = match event.encode() {
                Ok(body) => body,
                Err(error) => {
                    results.push(Err(Refused::Disk(error.to_string())));
                    continue;
                }
            };
            if self.is_full(buffered.len(), buffer.len(), body.len()) {
                self.write(&mut buffer, &mut buffered, &mut results);
                if let Err(refused) = self.rotate() {
                    refuse(&mut results, &refused);
                }
            }
            frame(&mut buffer, &body);
            buffered.push(event.accepted_at);
            results.push(Ok(()));
            if always {
                self.write(&mut buffer, &mut buffered, &mut results);
                if let (Err(refused), Some(last)) = (self.sync(), results.last_mut()) {
                    *last = Err(refused);
                }
            }
        }
        self.write(&mut buffer, &mut buffered, &mut results);
        results
    }

    /// Whether the file takes no more after what is buffered.
    fn is_full(&self, events: usize, bytes: usize, next: usize) -> bool {
        let (has_events, has_bytes) =
            self.active.as_ref().map_or((0, 0), |active| (active.held.events, active.good));
        let events = has_events + events as u64;
        let options = &self.shared.options;
        events >= options.events_per_file.max(1)
            || (events > 0 && has_bytes + (bytes + next) as u64 > options.bytes_per_file)
    }

    /// Writes what is buffered. On failure these events are refused, and the file ends where it was.
    fn write(&mut self, buffer: &mut Vec<u8>, buffered: &mut Vec<Option<Timestamp>>, results: &mut Appended) {
        if buffered.is_empty() {
            return;
        }
        if let Err(error) = self.try_write(buffer, buffered) {
            tracing::warn!(target: "spool", %error, events = buffered.len(), "the spool cannot be written");
            self.shared.writable.store(false, Ordering::Relaxed);
            let refused = Refused::Disk(error.to_string());
            // The buffered ones are the last that are not refused yet.
            let open = results.iter_mut().rev().filter(|r| r.is_ok()).take(buffered.len());
            open.for_each(|r| *r = Err(refused.clone()));
        }
        buffer.clear();
        buffered.clear();
    }

    fn try_write(&mut self, buffer: &[u8], buffered: &[Option<Timestamp>]) -> std::io::Result<()> {
        if self.active.is_none() {
            self.active = Some(self.open()?);
        }
        let Some(active) = &mut self.active else { return Ok(()) };
        if let Err(error) = active.file.append(buffer) {
            // A torn record in the middle would hide everything behind it.
            if active.file.truncate(active.good).is_err() {
                self.close();
            }
            return Err(error);
        }
        active.good += buffer.len() as u64;
        active.held.bytes = active.good;
        active.held.events += buffered.len() as u64;
        let oldest = buffered.iter().flatten().min().copied();
        active.held.oldest = [active.held.oldest, oldest].into_iter().flatten().min();
        if self.shared.options.fsync == FsyncMode::Never {
            active.mark_synced();
        }
        let entry = (format!("{}{ACTIVE}", active.stem), active.held.clone());
        self.shared.ledger.lock().active = Some(entry);
        Ok(())
    }

    fn open(&mut self) -> std::io::Result<Active> {
        let dir = &self.shared.place.dir;
        let stem = self.names.mint();
        let path = dir.join(format!("{stem}{ACTIVE}"));
        let mut file = self.shared.disk.create(&path)?;
        let created = now();
        let header = Header::new(&self.shared.options.server_id, self.shared.instance, created).bytes();
        let written = file.append(&header).and_then(|()| match self.shared.options.fsync {
            FsyncMode::Never => Ok(()),
            // The name of the file has to survive with its first event.
            _ => self.shared.disk.sync_dir(dir),
        });
        if let Err(error) = written {
            let _ = self.shared.disk.remove(&path);
            return Err(error);
        }
        let good = header.len() as u64;
        let held = Held { bytes: good, ..Held::default() };
        Ok(Active { file, stem, held, good, synced: good, synced_events: 0 })
    }

    /// Makes everything written durable. On failure the file ends at the last durable byte.
    fn sync(&mut self) -> Result<(), Refused> {
        let Some(active) = &mut self.active else { return Ok(()) };
        if active.synced == active.good {
            return Ok(());
        }
        let tried = active.file.sync().and_then(|()| match active.file.is_linked() {
            true => Ok(()),
            false => Err(std::io::Error::other("the file was deleted under the broker")),
        });
        let Err(error) = tried else {
            active.mark_synced();
            self.shared.writable.store(true, Ordering::Relaxed);
            return Ok(());
        };
        tracing::error!(target: "spool", %error, "spooled events could not be synced");
        self.shared.writable.store(false, Ordering::Relaxed);
        // After a failed sync nobody knows what the file holds: nothing more goes into it.
        active.good = active.synced;
        active.held.bytes = active.good;
        active.held.events = active.synced_events;
        let _ = active.file.truncate(active.good);
        self.close();
        Err(Refused::Disk(error.to_string()))
    }

    /// Closes a full file; whoever waits for a sync of it has it then.
    fn rotate(&mut self) -> Result<(), Refused> {
        let synced = self.sync();
        if let Err(refused) = &synced {
            self.owed.iter_mut().for_each(|owed| refuse(&mut owed.results, refused));
        }
        self.close();
        synced
    }

    fn finalize(&mut self) {
        self.settle();
        self.close();
    }

    /// Renames the file to what it is called when it is complete; one without events goes.
    fn close(&mut self) {
        let Some(active) = self.active.take() else { return };
        drop(active.file);
        let (disk, dir) = (&self.shared.disk, &self.shared.place.dir);
        let old = dir.join(format!("{}{ACTIVE}", active.stem));
        let name = format!("{}{READY}", active.stem);
        let moved =
            if active.held.events == 0 { disk.remove(&old) } else { disk.rename(&old, &dir.join(&name)) };
        let name = if moved.is_ok() { name } else { format!("{}{ACTIVE}", active.stem) };
        if let Err(error) = moved.and_then(|()| disk.sync_dir(dir)) {
            tracing::warn!(target: "spool", %error, file = name, "a spool file could not be closed");
        }
        let mut ledger = self.shared.ledger.lock();
        ledger.active = None;
        if active.held.events > 0 {
            ledger.ready.insert(name, active.held);
        }
    }

    /// Whether one more event may be written at all.
    fn room(&mut self) -> Result<(), Refused> {
        let options = &self.shared.options;
        let bytes = self.shared.ledger.lock().bytes();
        if options.max_bytes > 0 && bytes >= options.max_bytes {
            return Err(Refused::Ceiling { bytes, max: options.max_bytes });
        }
        let Ok(space) = self.shared.disk.space(&self.shared.place.dir) else { return Ok(()) };
        self.shared.ledger.lock().disk_free = space.free;
        let reserve = options.min_free_bytes.min(space.total / 20);
        if space.free < reserve {
            self.shared.writable.store(false, Ordering::Relaxed);
            return Err(Refused::Full { free: space.free, reserve });
        }
        Ok(())
    }

    fn probe(&mut self) -> bool {
        let tried = self.room().map_err(|refused| refused.to_string()).and_then(|()| {
            probe(&self.shared.place.dir, &*self.shared.disk).map_err(|error| error.to_string())
        });
        let was = self.shared.writable.swap(tried.is_ok(), Ordering::Relaxed);
        match tried {
            Err(error) if was => tracing::error!(target: "spool", error, "the spool cannot be written"),
            Ok(()) if !was => tracing::info!(target: "spool", "the spool can be written again"),
            _ => {}
        }
        self.shared.writable.load(Ordering::Relaxed)
    }
}

impl Active {
    fn mark_synced(&mut self) {
        self.synced = self.good;
        self.synced_events = self.held.events;
    }
}

/// Nobody can vouch for what was accepted. A refused event may be stored all the same, as after any lost answer.
fn refuse(results: &mut Appended, refused: &Refused) {
    results.iter_mut().filter(|r| r.is_ok()).for_each(|r| *r = Err(refused.clone()));
}

/// The time of day.
pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
