//! The directory: made, tried, locked, and what is found in it counted.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use queen_types::Uuid;
use serde::{Deserialize, Serialize};

use crate::disk::Disk;
use crate::error::OpenError;
use crate::ledger::{Held, Ledger};
use crate::name::{ACTIVE, BAD, FAILED, LOCK, READY, REST, stem};
use crate::options::{OnConflict, SpoolOptions};
use crate::reader::{Entry, FileReader};

/// Who holds a directory, as its lock file tells.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Holder {
    server_id: String,
    instance_id: Uuid,
    pid: u32,
}

/// A directory that is ours until this is dropped or given up.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) dir: PathBuf,
    lock: Mutex<Option<File>>,
}

impl Place {
    /// Lets somebody else have it.
    pub(crate) fn give_up(&self) {
        *self.lock.lock() = None;
    }

    /// Takes the directory of the options, or one inside of it.
    pub(crate) fn take(options: &SpoolOptions, instance: Uuid, disk: &dyn Disk) -> Result<Place, OpenError> {
        let place = match lock(&options.dir, &options.server_id, instance)? {
            Ok(place) => place,
            // Brokers of one process never fight over a directory.
            Err(holder) if holder.as_ref().is_some_and(|h| h.pid == std::process::id()) => {
                inside(options, &instance.to_string(), instance)?
            }
            Err(_) if options.on_conflict == OnConflict::Subdir => {
                inside(options, &safe(&options.server_id), instance)?
            }
            Err(holder) => return Err(held(&options.dir, holder)),
        };
        let unusable = |error| OpenError::Unusable { dir: place.dir.clone(), error };
        std::fs::create_dir_all(place.dir.join(FAILED)).or_else(ignore_failed).map_err(unusable)?;
        probe(&place.dir, disk).map_err(unusable)?;
        Ok(place)
    }

    /// Takes over the files of directories inside this one whose owners are gone.
    pub(crate) fn adopt(&self, disk: &dyn Disk) -> io::Result<usize> {
        let mut adopted = 0;
        for entry in std::fs::read_dir(&self.dir)? {
            let dir = entry?.path();
            if !dir.join(LOCK).is_file() {
                continue;
            }
            let file = OpenOptions::new().read(true).write(true).open(dir.join(LOCK))?;
            if file.try_lock().is_err() {
                continue;
            }
            for (name, _) in names(&dir)? {
                let Some(found) = stem(&name, ACTIVE).or_else(|| stem(&name, READY)) else { continue };
                let to = self.dir.join(format!("{found}{READY}"));
                if to.exists() {
                    continue;
                }
                disk.rename(&dir.join(&name), &to)?;
                adopted += 1;
            }
            disk.sync_dir(&self.dir)?;
            disk.sync_dir(&dir)?;
        }
        Ok(adopted)
    }
}

/// Quarantine may lie on something that cannot be written; that shows when it is needed.
fn ignore_failed(error: io::Error) -> io::Result<()> {
    tracing::warn!(target: "spool", %error, "the folder of quarantined events cannot be made");
    Ok(())
}

fn held(dir: &Path, holder: Option<Holder>) -> OpenError {
    let holder = holder.map_or_else(
        || "nobody that its lock file tells".to_owned(),
        |h| format!("server {} (instance {}, process {})", h.server_id, h.instance_id, h.pid),
    );
    OpenError::Held { dir: dir.to_owned(), holder }
}

fn inside(options: &SpoolOptions, name: &str, instance: Uuid) -> Result<Place, OpenError> {
    let dir = options.dir.join(name);
    lock(&dir, &options.server_id, instance)?.map_err(|holder| held(&dir, holder))
}

/// A server id as the name of a directory.
fn safe(id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    format!("server-{}", id.chars().map(plain).collect::<String>())
}

/// Makes and locks a directory; inside, who holds it already.
fn lock(dir: &Path, server_id: &str, instance: Uuid) -> Result<Result<Place, Option<Holder>>, OpenError> {
    let unusable = |error| OpenError::Unusable { dir: dir.to_owned(), error };
    make_private(dir).map_err(unusable)?;
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(dir.join(LOCK))
        .map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let read = file.read_to_string(&mut text);
            return Ok(Err(read.ok().and_then(|_| serde_json::from_str(&text).ok())));
        }
        Err(TryLockError::Error(error)) => return Err(unusable(error)),
    }
    let holder = Holder { server_id: server_id.to_owned(), instance_id: instance, pid: std::process::id() };
    let text = serde_json::to_vec(&holder).unwrap_or_default();
    file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(&text)).map_err(unusable)?;
    Ok(Ok(Place { dir: dir.to_owned(), lock: Mutex::new(Some(file)) }))
}

/// Messages of everybody stand in there: only the owner reads them.
fn make_private(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Writes, syncs and deletes a file.
pub(crate) fn probe(dir: &Path, disk: &dyn Disk) -> io::Result<()> {
    let path = dir.join(".probe");
    let _ = disk.remove(&path);
    let tried = disk.create(&path).and_then(|mut file| {
        file.append(b"probe")?;
        file.sync()?;
        if file.is_linked() { Ok(()) } else { Err(io::Error::other("the directory is gone")) }
    });
    let removed = disk.remove(&path);
    tried.and(removed)
}

/// Names of plain files in a directory with their sizes, in order.
pub(crate) fn names(dir: &Path) -> io::Result<Vec<(String, u64)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if let (true, Ok(name)) = (metadata.is_file(), entry.file_name().into_string()) {
            found.push((name, metadata.len()));
        }
    }
    found.sort();
    Ok(found)
}

/// Closes what a former life left open, and counts everything.
pub(crate) fn scan(dir: &Path, disk: &dyn Disk) -> io::Result<Ledger> {
    let mut ledger = Ledger::default();
    for (name, _) in names(dir)? {
        if let Some(found) = stem(&name, ACTIVE) {
            disk.rename(&dir.join(&name), &dir.join(format!("{found}{READY}")))?;
        }
    }
    disk.sync_dir(dir)?;
    for (name, bytes) in names(dir)? {
        if stem(&name, READY).is_some() {
            let held = count(&dir.join(&name), bytes);
            ledger.ready.insert(name, held);
        } else if stem(&name, BAD).is_some() {
            let held = count(&dir.join(&name), bytes);
            ledger.bad.insert(name, held);
        }
    }
    let failed = dir.join(FAILED);
    // Without the folder there is nothing in it.
    for (name, bytes) in names(&failed).unwrap_or_default() {
        if stem(&name, READY).is_some() {
            let held = count(&failed.join(&name), bytes);
            ledger.quarantined.insert(name, held);
        } else if stem(&name, REST).is_some() {
            ledger.quarantined.insert(name, Held { bytes, ..Held::default() });
        }
    }
    Ok(ledger)
}

/// Events of a file, by the lengths of its records: what is in them is looked at when they are replayed. Its oldest event is
/// the first.
pub(crate) fn count(path: &Path, bytes: u64) -> Held {
    let mut held = Held { bytes, ..Held::default() };
    let Ok(mut reader) = FileReader::open(path) else { return held };
    if let Ok(Entry::Record(_, event)) = reader.next_entry() {
        held.oldest = event.ok().and_then(|event| event.accepted_at);
        held.events = 1 + reader.skip_to_end().unwrap_or(0);
    }
    held
}
