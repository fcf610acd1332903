use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use queen_types::Uuid;
use tokio::sync::oneshot;

use crate::disk::{Disk, RealDisk};
use crate::drain::Reason;
use crate::error::{OpenError, Refused};
use crate::event::Event;
use crate::ledger::Status;
use crate::name::{BAD, FAILED, REST};
use crate::options::SpoolOptions;
use crate::place::{Place, scan};
use crate::quarantine::{self, Aside, Kept, Listing, QuarantineError};
use crate::reader::FileReader;
use crate::writer::{Job, Shared, Writer, now};

/// A directory of accepted events, owned by this value. Its thread sleeps while nobody wants anything of it.
pub struct Spool {
    shared: Arc<Shared>,
    jobs: Sender<Job>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Spool {
    /// Takes the directory, closes what a former life left open, counts what is in it and starts to write. Blocking.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(options: SpoolOptions) -> Result<Spool, OpenError> {
        Spool::open_on(options, Arc::new(RealDisk))
    }

    /// As [`Spool::open`], on a file system that is watched.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_on(options: SpoolOptions, disk: Arc<dyn Disk>) -> Result<Spool, OpenError> {
        let instance = Uuid::now_v7();
        let place = Place::take(&options, instance, &*disk)?;
        let dir = place.dir.clone();
        let unusable = |error| OpenError::Unusable { dir: dir.clone(), error };
        let adopted = place.adopt(&*disk).map_err(unusable)?;
        if adopted > 0 {
            tracing::info!(target: "spool", files = adopted, "files of a broker that is gone are taken over");
        }
        let ledger = Mutex::new(scan(&dir, &*disk).map_err(unusable)?);
        let writable = AtomicBool::new(true);
        let shared = Arc::new(Shared { place, options, instance, disk, ledger, writable });
        let (jobs, queue) = channel();
        let writer = Writer::new(shared.clone());
        let thread = std::thread::Builder::new().name("spool".to_owned()).spawn(move || writer.run(&queue));
        let thread = Mutex::new(Some(thread.map_err(unusable)?));
        Ok(Spool { shared, jobs, thread })
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.shared.place.dir
    }

    /// Writes events behind all others; one answer per event, in order. `Ok`: it is on disk, as durable as the options ask.
    ///
    /// They are on their way when this returns; the future waits for the answers.
    ///
    /// # Cancel safety
    /// The events are accepted, or not, all the same.
    pub fn append(
        &self,
        events: Vec<Event>,
    ) -> impl Future<Output = Vec<Result<(), Refused>>> + Send + use<> {
        let count = events.len();
        let (reply, results) = oneshot::channel();
        let sent = self.jobs.send(Job::Append { events, reply }).is_ok();
        async move {
            let results = if sent { results.await.ok() } else { None };
            results.unwrap_or_else(|| vec![Err(Refused::Closed); count])
        }
    }

    /// Closes the file that is written, so that it can be replayed.
    ///
    /// # Cancel safety
    /// It is closed all the same.
    pub async fn finalize(&self) {
        let (reply, done) = oneshot::channel();
        if self.jobs.send(Job::Finalize { reply }).is_ok() {
            let _ = done.await;
        }
    }

    /// Tries whether the directory can be written.
    ///
    /// # Cancel safety
    /// Nothing is left behind.
    pub async fn probe(&self) -> bool {
        let (reply, writable) = oneshot::channel();
        self.jobs.send(Job::Probe { reply }).is_ok() && writable.await.unwrap_or(false)
    }

    /// Whether the last write, or trial of one, went well.
    pub fn is_writable(&self) -> bool {
        self.shared.writable.load(Ordering::Relaxed)
    }

    /// Events that are not stored yet.
    pub fn pending(&self) -> u64 {
        self.shared.ledger.lock().pending()
    }

    /// Everything in numbers.
    pub fn status(&self) -> Status {
        self.shared.ledger.lock().status(self.is_writable())
    }

    /// Names of the complete files, oldest first.
    pub fn ready(&self) -> Vec<String> {
        self.shared.ledger.lock().ready.keys().cloned().collect()
    }

    /// Opens a complete file. Blocking.
    ///
    /// # Errors
    /// Those of the system.
    pub fn reader(&self, name: &str) -> io::Result<FileReader> {
        FileReader::open(&self.dir().join(name))
    }

    /// Books that so many events of a complete file were stored, or set aside, since this was last said.
    pub fn stored(&self, name: &str, events: u64) {
        if let Some(held) = self.shared.ledger.lock().ready.get_mut(name) {
            held.events = held.events.saturating_sub(events);
        }
    }

    /// Books a record whose write was cut off.
    pub fn torn(&self) {
        self.shared.ledger.lock().torn += 1;
    }

    /// Ends a file whose every event is decided: those in `aside` (position and reason) go to quarantine together with
    /// `rest` and what could be read of it, and the file goes. When quarantine cannot be written the file stays under
    /// another name. Blocking.
    ///
    /// # Errors
    /// The file could be moved nowhere; it is passed over until the next start.
    pub fn finish(
        &self,
        name: &str,
        reader: Option<&mut FileReader>,
        aside: &[(u64, Reason)],
        rest: Option<(Vec<u8>, Vec<Vec<u8>>)>,
    ) -> io::Result<()> {
        let done = self.try_finish(name, reader, aside, rest).or_else(|error| self.pass_over(name, error));
        let held = self.shared.ledger.lock().ready.remove(name);
        if let (Err(_), Some(held)) = (&done, held) {
            self.shared.ledger.lock().bad.insert(name.to_owned(), held);
        }
        done
    }

    fn try_finish(
        &self,
        name: &str,
        reader: Option<&mut FileReader>,
        aside: &[(u64, Reason)],
        rest: Option<(Vec<u8>, Vec<Vec<u8>>)>,
    ) -> io::Result<()> {
        let at = now().millis_text();
        let why = |reason: &Reason| Aside {
            sqlstate: reason.sqlstate.clone(),
            error: reason.error.clone(),
            failed_at: at.clone(),
        };
        let mut records = Vec::new();
        match reader {
            Some(reader) => {
                for (index, reason) in aside {
                    records.push((reader.again(*index)?.0, why(reason)));
                }
            }
            None if !aside.is_empty() => return Err(io::Error::other("the file cannot be read")),
            None => {}
        }
        let (rest, salvaged) = rest.map_or((None, Vec::new()), |(rest, found)| (Some(rest), found));
        let behind = Reason { sqlstate: None, error: "it stands behind a damaged record".to_owned() };
        records.extend(salvaged.into_iter().map(|body| (body, why(&behind))));
        let stem = quarantine::stem_of(name).ok_or_else(|| io::Error::other("no spool file"))?;
        let kept = Kept { records, rest };
        quarantine::keep(&self.shared, stem, &kept)?;
        let disk = &self.shared.disk;
        if let Err(error) = disk.remove(&self.dir().join(name)).and_then(|()| disk.sync_dir(self.dir())) {
            // Its events are stored, or stand in quarantine: a replay after the next start finds duplicates.
            tracing::error!(target: "spool", %error, file = name, "a replayed spool file could not be deleted");
        }
        if !kept.records.is_empty() || kept.rest.is_some() {
            let mut ledger = self.shared.ledger.lock();
            ledger.set_aside += kept.records.len() as u64;
            ledger.set_aside_files += 1;
        }
        Ok(())
    }

    /// Sets a file aside that cannot be read. Blocking.
    ///
    /// # Errors
    /// As [`Spool::finish`].
    pub fn set_aside(&self, name: &str, error: io::Error) -> io::Result<()> {
        let to = self
            .dir()
            .join(FAILED)
            .join(quarantine::stem_of(name).map_or(name.to_owned(), |s| s.to_owned() + REST));
        let disk = &self.shared.disk;
        let moved = disk.rename(&self.dir().join(name), &to);
        let done = match moved.and_then(|()| disk.sync_dir(&self.dir().join(FAILED))) {
            Ok(()) => {
                tracing::error!(target: "spool", %error, file = name, "a spool file cannot be read and is set aside");
                quarantine::note_rest(&self.shared, &to);
                Ok(())
            }
            Err(error) => self.pass_over(name, error),
        };
        let held = self.shared.ledger.lock().ready.remove(name);
        if let (Err(_), Some(held)) = (&done, held) {
            self.shared.ledger.lock().bad.insert(name.to_owned(), held);
        }
        done
    }

    /// Quarantine cannot be written: the file stays, under a name that no replay looks at.
    fn pass_over(&self, name: &str, error: io::Error) -> io::Result<()> {
        let Some(stem) = quarantine::stem_of(name) else { return Err(error) };
        let (from, bad) = (self.dir().join(name), format!("{stem}{BAD}"));
        let disk = &self.shared.disk;
        tracing::error!(
            target: "spool", %error, file = name, folder = FAILED,
            "events cannot be moved to quarantine; their file is kept as it is, under the ending .bad"
        );
        let renamed = disk.rename(&from, &self.dir().join(&bad)).and_then(|()| disk.sync_dir(self.dir()));
        let Err(error) = renamed else {
            let mut ledger = self.shared.ledger.lock();
            if let Some(held) = ledger.ready.remove(name) {
                ledger.set_aside += held.events;
                ledger.set_aside_files += 1;
                ledger.bad.insert(bad, held);
            }
            return Ok(());
        };
        if self.shared.options.delete_unmovable {
            tracing::error!(target: "spool", file = name, "a file that cannot be moved is deleted, as configured");
            return disk.remove(&from);
        }
        Err(error)
    }

    /// A page of what stands in quarantine. Blocking.
    ///
    /// # Errors
    /// See [`QuarantineError`].
    pub fn quarantined(
        &self,
        file: Option<&str>,
        offset: u64,
        limit: u64,
    ) -> Result<Listing, QuarantineError> {
        quarantine::list(&self.shared, file, offset, limit)
    }

    /// Puts quarantined events back behind all files; without `indexes` every one of the file. How many.
    ///
    /// # Errors
    /// See [`QuarantineError`]; nothing has left the quarantine then, and a part may be in the spool as well.
    ///
    /// # Cancel safety
    /// The events of a dropped call may be in both places; the replay of the copies finds duplicates.
    pub async fn requeue(&self, file: &str, indexes: Option<&[u64]>) -> Result<u64, QuarantineError> {
        let taken = quarantine::take(&self.shared, file, indexes)?;
        let results = self.append(taken.events.clone()).await;
        if let Some(refused) = results.iter().find_map(|r| r.as_ref().err()) {
            return Err(QuarantineError::Refused(refused.to_string()));
        }
        quarantine::taken(&self.shared, &taken)?;
        tracing::info!(target: "spool", file, events = results.len(), "quarantined events go back to the spool");
        Ok(results.len() as u64)
    }

    /// Deletes a file of the quarantine with its events. How many. Blocking.
    ///
    /// # Errors
    /// See [`QuarantineError`].
    pub fn delete(&self, file: &str) -> Result<u64, QuarantineError> {
        quarantine::delete(&self.shared, file)
    }

    /// Answers what is queued, syncs and closes the file that is written, takes nothing more, and gives the directory up.
    /// Blocking.
    pub fn close(&self) {
        let _ = self.jobs.send(Job::Stop);
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
        self.shared.place.give_up();
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        self.close();
    }
}
