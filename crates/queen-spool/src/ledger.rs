//! What is in the directory: every file with what it holds. The gauges come from here, and this from the disk.

use std::collections::BTreeMap;

use queen_types::Timestamp;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileState {
    /// It is being written.
    Active,
    /// It is complete and waits for its replay.
    Ready,
    /// Its events can not be stored.
    Quarantined,
    /// It could not be moved to quarantine, and is passed over where it is.
    Bad,
}

impl FileState {
    /// The word for it on the wire and in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            FileState::Active => "active",
            FileState::Ready => "ready",
            FileState::Quarantined => "quarantined",
            FileState::Bad => "bad",
        }
    }
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStatus {
    /// Its name.
    pub name: String,
    /// What it is.
    pub state: FileState,
    /// Events in it that still wait.
    pub events: u64,
    /// Its size.
    pub bytes: u64,
    /// When its oldest event was accepted, when that is known.
    pub oldest: Option<Timestamp>,
}

/// The spool in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// Events that are not stored yet.
    pub pending: u64,
    /// Files that hold them.
    pub pending_files: u64,
    /// Of these, complete ones.
    pub ready_files: u64,
    /// Bytes of these complete ones.
    pub ready_bytes: u64,
    /// Bytes of all files but those in quarantine.
    pub bytes: u64,
    /// When the oldest waiting event was accepted.
    pub oldest: Option<Timestamp>,
    /// Events in quarantine on disk.
    pub quarantined: u64,
    /// Files in quarantine on disk.
    pub quarantined_files: u64,
    /// Bytes in quarantine on disk.
    pub quarantine_bytes: u64,
    /// Events accepted since the start.
    pub written: u64,
    /// Events refused since the start.
    pub refused: u64,
    /// Events set aside since the start.
    pub set_aside: u64,
    /// Files from which events were set aside since the start.
    pub set_aside_files: u64,
    /// Records found torn since the start: writes that were cut off before they were answered.
    pub torn: u64,
    /// Whether the last write, or trial of one, went well.
    pub writable: bool,
    /// Free bytes of the file system, as of the last look.
    pub disk_free: u64,
    /// The files, in order.
    pub files: Vec<FileStatus>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Held {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
    pub(crate) oldest: Option<Timestamp>,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) active: Option<(String, Held)>,
    pub(crate) ready: BTreeMap<String, Held>,
    pub(crate) quarantined: BTreeMap<String, Held>,
    pub(crate) bad: BTreeMap<String, Held>,
    pub(crate) written: u64,
    pub(crate) refused: u64,
    pub(crate) set_aside: u64,
    pub(crate) set_aside_files: u64,
    pub(crate) torn: u64,
    pub(crate) disk_free: u64,
}

impl Ledger {
    /// Events that wait, without listing the files.
    pub(crate) fn pending(&self) -> u64 {
        self.waiting().map(|held| held.events).sum()
    }

    /// Bytes of the files that the ceiling counts.
    pub(crate) fn bytes(&self) -> u64 {
        self.waiting().chain(self.bad.values()).map(|held| held.bytes).sum()
    }

    fn waiting(&self) -> impl Iterator<Item = &Held> {
        self.active.iter().map(|(_, held)| held).chain(self.ready.values())
    }

    pub(crate) fn status(&self, writable: bool) -> Status {
        let mut files = Vec::new();
        let mut list = |state, held: &mut dyn Iterator<Item = (&String, &Held)>| {
            files.extend(held.map(|(name, held)| FileStatus {
                name: name.clone(),
                state,
                events: held.events,
                bytes: held.bytes,
                oldest: held.oldest,
            }));
        };
        list(FileState::Ready, &mut self.ready.iter());
        list(FileState::Active, &mut self.active.iter().map(|(name, held)| (name, held)));
        list(FileState::Quarantined, &mut self.quarantined.iter());
        list(FileState::Bad, &mut self.bad.iter());
        let aside = || self.quarantined.values().chain(self.bad.values());
        Status {
            pending: self.pending(),
            pending_files: self.waiting().count() as u64,
            ready_files: self.ready.len() as u64,
            ready_bytes: self.ready.values().map(|held| held.bytes).sum(),
            bytes: self.bytes(),
            oldest: self.waiting().filter(|held| held.events > 0).filter_map(|held| held.oldest).min(),
            quarantined: aside().map(|held| held.events).sum(),
            quarantined_files: aside().count() as u64,
            quarantine_bytes: aside().map(|held| held.bytes).sum(),
            written: self.written,
            refused: self.refused,
            set_aside: self.set_aside,
            set_aside_files: self.set_aside_files,
            torn: self.torn,
            writable,
            disk_free: self.disk_free,
            files,
        }
    }
}
