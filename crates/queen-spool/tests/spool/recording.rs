//! A file system that writes down what is done to it, and can be told to fail.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use queen_spool::{Disk, DiskFile, RealDisk, Space};

/// One change, in the order of the changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Create(PathBuf),
    /// The file as it was created, whatever it is called now.
    Append(PathBuf, Vec<u8>),
    Sync(PathBuf),
    Truncate(PathBuf, u64),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    SyncDir(PathBuf),
}

/// What goes wrong.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// From now on so many bytes fit, then the disk is full; a write that does not fit is cut off.
    pub(crate) room: Mutex<Option<usize>>,
    /// So many syncs fail from now on.
    pub(crate) syncs: AtomicUsize,
    /// Truncations fail.
    pub(crate) truncate: std::sync::atomic::AtomicBool,
    /// Free bytes that the disk claims to have.
    pub(crate) free: Mutex<Option<u64>>,
}

#[derive(Clone, Default)]
pub(crate) struct Recording {
    pub(crate) changes: Arc<Mutex<Vec<Change>>>,
    pub(crate) faults: Arc<Faults>,
}

impl Recording {
    pub(crate) fn note(&self, change: Change) {
        self.changes.lock().unwrap().push(change);
    }
}

impl Disk for Recording {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = RealDisk.create(path)?;
        self.note(Change::Create(path.to_owned()));
        Ok(Box::new(RecordingFile { path: path.to_owned(), file, all: self.clone() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)?;
        self.note(Change::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)?;
        self.note(Change::Remove(path.to_owned()));
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        RealDisk.sync_dir(dir)?;
        self.note(Change::SyncDir(dir.to_owned()));
        Ok(())
    }

    fn space(&self, dir: &Path) -> io::Result<Space> {
        let space = RealDisk.space(dir)?;
        Ok(self.faults.free.lock().unwrap().map_or(space, |free| Space { free, ..space }))
    }
}

struct RecordingFile {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    all: Recording,
}

impl DiskFile for RecordingFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut room = self.all.faults.room.lock().unwrap();
        let fits = room.map_or(bytes.len(), |room| room.min(bytes.len()));
        self.file.append(&bytes[..fits])?;
        self.all.note(Change::Append(self.path.clone(), bytes[..fits].to_vec()));
        if let Some(room) = room.as_mut() {
            *room -= fits;
        }
        if fits < bytes.len() { Err(io::Error::from(io::ErrorKind::StorageFull)) } else { Ok(()) }
    }

    fn sync(&mut self) -> io::Result<()> {
        let spend = |left: usize| left.checked_sub(1);
        if self.all.faults.syncs.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).is_ok() {
            return Err(io::Error::other("the disk lost it"));
        }
        self.file.sync()?;
        self.all.note(Change::Sync(self.path.clone()));
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        if self.all.faults.truncate.load(Ordering::Relaxed) {
            return Err(io::Error::other("no"));
        }
        self.file.truncate(length)?;
        self.all.note(Change::Truncate(self.path.clone(), length));
        Ok(())
    }

    fn is_linked(&self) -> bool {
        self.file.is_linked()
    }
}
