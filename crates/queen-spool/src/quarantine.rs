//! Events that can not be stored: files of the usual format in the folder `failed`, each with a file that says why.
//! Nothing but an operator takes anything out of there.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::disk::Disk;
use crate::event::Event;
use crate::format::{Header, frame, salvage};
use crate::ledger::Held;
use crate::name::{ACTIVE, BAD, FAILED, READY, REASON, REST, stem};
use crate::place::count;
use crate::reader::{Entry, FileReader};
use crate::writer::{Shared, now};

/// Why an event stands in quarantine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Aside {
    /// The server's code, if it was a server that refused.
    #[serde(default)]
    pub sqlstate: Option<String>,
    /// In words.
    pub error: String,
    /// When it was set aside, as ISO 8601.
    #[serde(default)]
    pub failed_at: String,
}

/// An event in quarantine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// Its file.
    pub file: String,
    /// Its place in the file, from 0.
    pub index: u64,
    /// The event; `None` for a record that is none.
    pub event: Option<Event>,
    /// Why it is there.
    pub why: Aside,
}

/// A page of the quarantine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// In the order of files and records.
    pub events: Vec<Quarantined>,
    /// How many there are without the bounds of the page.
    pub total: u64,
}

/// Why an operator did not get what was asked for.
#[derive(Debug, thiserror::Error)]
pub enum QuarantineError {
    /// No file of that name is in quarantine.
    #[error("no file {0:?} is in quarantine")]
    NoSuchFile(String),
    /// The file has no such event.
    #[error("{file} has {events} events, none of which is number {index}")]
    NoSuchEvent {
        /// The file.
        file: String,
        /// What was asked for.
        index: u64,
        /// How many there are, from 0.
        events: u64,
    },
    /// The record is no event.
    #[error("record {index} of {file} is no event and cannot be pushed; export it instead")]
    NoEvent {
        /// The file.
        file: String,
        /// What was asked for.
        index: u64,
    },
    /// The spool took them back in part or not at all; what it did not take still stands in quarantine.
    #[error("the events could not go back: {0}")]
    Refused(String),
    /// The system did not do it.
    #[error("the quarantine cannot be read or written: {0}")]
    Io(#[from] io::Error),
}

/// Reasons by position, as the file beside a quarantined one holds them.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Reasons {
    events: BTreeMap<u64, Aside>,
}

/// What of a file can not be stored.
pub(crate) struct Kept {
    pub(crate) records: Vec<(Vec<u8>, Aside)>,
    /// The bytes behind a damaged record.
    pub(crate) rest: Option<Vec<u8>>,
}

/// Writes what is kept of a file, replacing what an earlier attempt at the same file left. Afterwards the folder says the
/// same of that file whenever the process dies.
pub(crate) fn keep(shared: &Shared, stem: &str, kept: &Kept) -> io::Result<()> {
    let failed = shared.place.dir.join(FAILED);
    let (file, rest) = (format!("{stem}{READY}"), format!("{stem}{REST}"));
    if kept.records.is_empty() && kept.rest.is_none() {
        let known = |name: &String| shared.ledger.lock().quarantined.contains_key(name);
        if !known(&file) && !known(&rest) {
            return Ok(());
        }
    }
    if !failed.is_dir() {
        std::fs::create_dir(&failed)?;
        shared.disk.sync_dir(&shared.place.dir)?;
    }
    write_file(shared, &failed, stem, READY, &kept.records)?;
    match &kept.rest {
        Some(bytes) => replace(&*shared.disk, &failed.join(&rest), bytes)?,
        None => remove_if_there(&*shared.disk, &failed.join(&rest))?,
    }
    shared.disk.sync_dir(&failed)?;
    note(shared, &failed, &file);
    note(shared, &failed, &rest);
    Ok(())
}

/// Writes the records of a quarantined file and their reasons; none: both go.
fn write_file(
    shared: &Shared,
    dir: &Path,
    stem: &str,
    ending: &str,
    records: &[(Vec<u8>, Aside)],
) -> io::Result<()> {
    let (file, reasons) = (dir.join(format!("{stem}{ending}")), dir.join(format!("{stem}{REASON}")));
    if records.is_empty() {
        remove_if_there(&*shared.disk, &file)?;
        return remove_if_there(&*shared.disk, &reasons);
    }
    let mut bytes = Header::new(&shared.options.server_id, shared.instance, now()).bytes();
    records.iter().for_each(|(body, _)| frame(&mut bytes, body));
    let events = (0..).zip(records.iter().map(|(_, why)| why.clone())).collect();
    let text = serde_json::to_vec_pretty(&Reasons { events })?;
    replace(&*shared.disk, &reasons, &text)?;
    replace(&*shared.disk, &file, &bytes)
}

/// Puts a file in place as a whole, or leaves what is there.
fn replace(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    remove_if_there(disk, &part)?;
    let mut file = disk.create(&part)?;
    file.append(bytes)?;
    file.sync()?;
    disk.rename(&part, path)
}

fn remove_if_there(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    match disk.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Books what a file of the quarantine holds now.
fn note(shared: &Shared, dir: &Path, name: &str) {
    let path = dir.join(name);
    let held = std::fs::metadata(&path).ok().map(|found| match stem(name, REST) {
        Some(_) => Held { bytes: found.len(), ..Held::default() },
        None => count(&path, found.len()),
    });
    let mut ledger = shared.ledger.lock();
    let files = if stem(name, BAD).is_some() { &mut ledger.bad } else { &mut ledger.quarantined };
    match held {
        Some(held) => files.insert(name.to_owned(), held),
        None => files.remove(name),
    };
}

/// Books a file that was moved here as it was.
pub(crate) fn note_rest(shared: &Shared, path: &Path) {
    if let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) {
        note(shared, dir, name);
        shared.ledger.lock().set_aside_files += 1;
    }
}

/// A file that an operator named.
struct Found {
    dir: PathBuf,
    stem: String,
    ending: &'static str,
}

impl Found {
    fn of(shared: &Shared, name: &str) -> Result<Found, QuarantineError> {
        let dir = &shared.place.dir;
        let places = [(READY, dir.join(FAILED)), (REST, dir.join(FAILED)), (BAD, dir.clone())];
        for (ending, dir) in places {
            if let Some(stem) = stem(name, ending)
                && dir.join(name).is_file()
            {
                return Ok(Found { dir, stem: stem.to_owned(), ending });
            }
        }
        Err(QuarantineError::NoSuchFile(name.to_owned()))
    }

    fn name(&self) -> String {
        format!("{}{}", self.stem, self.ending)
    }

    /// All its records. Of damaged bytes those that can be found.
    fn records(&self) -> io::Result<Vec<(Vec<u8>, Aside)>> {
        let path = self.dir.join(self.name());
        if self.ending == REST {
            let bodies = salvage(&std::fs::read(path)?);
            let why = || Aside { error: "it stands behind a damaged record".to_owned(), ..Aside::default() };
            return Ok(bodies.into_iter().map(|body| (body, why())).collect());
        }
        let mut reader = FileReader::open(&path)?;
        let known = std::fs::read(self.dir.join(format!("{}{REASON}", self.stem))).ok();
        let mut known: Reasons =
            known.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        let mut records = Vec::new();
        while let Entry::Record(body, _) = reader.next_entry()? {
            let unknown = || Aside { error: "its file could not be moved".to_owned(), ..Aside::default() };
            let why = known.events.remove(&(records.len() as u64)).unwrap_or_else(unknown);
            records.push((body, why));
        }
        Ok(records)
    }
}

/// Names of everything that stands aside. Bytes behind damage are listed only when asked for by name: what can be read of
/// them is in the file beside.
fn all(shared: &Shared) -> Vec<String> {
    let ledger = shared.ledger.lock();
    let quarantined = ledger.quarantined.keys().filter(|name| stem(name, REST).is_none());
    quarantined.chain(ledger.bad.keys()).cloned().collect()
}

pub(crate) fn list(
    shared: &Shared,
    file: Option<&str>,
    offset: u64,
    limit: u64,
) -> Result<Listing, QuarantineError> {
    let files = file.map_or_else(|| all(shared), |name| vec![name.to_owned()]);
    let mut listing = Listing::default();
    for name in files {
        let found = match Found::of(shared, &name) {
            Ok(found) => found,
            // Deleted since it was counted.
            Err(QuarantineError::NoSuchFile(_)) if file.is_none() => continue,
            Err(error) => return Err(error),
        };
        for (index, (body, why)) in (0..).zip(found.records()?) {
            if listing.total >= offset && (listing.events.len() as u64) < limit {
                let event = Event::decode(&body).ok();
                listing.events.push(Quarantined { file: name.clone(), index, event, why });
            }
            listing.total += 1;
        }
    }
    Ok(listing)
}

/// The events of a file that are to go back, and what stays.
pub(crate) struct Taken {
    found: Found,
    pub(crate) events: Vec<Event>,
    stays: Vec<(Vec<u8>, Aside)>,
}

/// Looks up what is to go back; without indexes every record that is an event.
pub(crate) fn take(shared: &Shared, file: &str, indexes: Option<&[u64]>) -> Result<Taken, QuarantineError> {
    let found = Found::of(shared, file)?;
    let records = found.records()?;
    let count = records.len() as u64;
    let wanted: Option<BTreeSet<u64>> = indexes.map(|indexes| indexes.iter().copied().collect());
    if let Some(index) = wanted.iter().flatten().find(|index| **index >= count) {
        return Err(QuarantineError::NoSuchEvent { file: file.to_owned(), index: *index, events: count });
    }
    let (mut events, mut stays) = (Vec::new(), Vec::new());
    for (index, (body, why)) in (0..).zip(records) {
        let asked = wanted.as_ref().is_none_or(|wanted| wanted.contains(&index));
        match Event::decode(&body) {
            Ok(event) if asked => events.push(event),
            Err(_) if asked && wanted.is_some() => {
                return Err(QuarantineError::NoEvent { file: file.to_owned(), index });
            }
            _ => stays.push((body, why)),
        }
    }
    Ok(Taken { found, events, stays })
}

/// Takes out of a file what went back.
pub(crate) fn taken(shared: &Shared, taken: &Taken) -> Result<(), QuarantineError> {
    let Taken { found, stays, .. } = taken;
    // The raw bytes hold more than their records.
    if found.ending != REST {
        write_file(shared, &found.dir, &found.stem, found.ending, stays)?;
    }
    shared.disk.sync_dir(&found.dir)?;
    note(shared, &found.dir, &found.name());
    Ok(())
}

/// Deletes a file; how many events were in it.
pub(crate) fn delete(shared: &Shared, file: &str) -> Result<u64, QuarantineError> {
    let found = Found::of(shared, file)?;
    let records = found.records()?.len() as u64;
    if found.ending == REST {
        shared.disk.remove(&found.dir.join(file))?;
    } else {
        write_file(shared, &found.dir, &found.stem, found.ending, &[])?;
    }
    shared.disk.sync_dir(&found.dir)?;
    note(shared, &found.dir, file);
    tracing::warn!(target: "spool", file, events = records, "quarantined events were deleted by an operator");
    Ok(records)
}

/// The stem of a file that waits for its replay.
pub(crate) fn stem_of(name: &str) -> Option<&str> {
    stem(name, READY).or_else(|| stem(name, ACTIVE))
}
