//! What the spool asks of a file system, so that a test can record it, or let it fail.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Size of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// All of it, in bytes.
    pub total: u64,
    /// What is left for us, in bytes.
    pub free: u64,
}

/// Everything that the spool changes on disk goes through here. Blocking.
pub trait Disk: Send + Sync + 'static {
    /// Makes a file that must not exist yet.
    ///
    /// # Errors
    /// Those of the system, here and below.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Renames, replacing what has the new name.
    ///
    /// # Errors
    /// Those of the system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Deletes a file.
    ///
    /// # Errors
    /// Those of the system.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the names of a directory durable.
    ///
    /// # Errors
    /// Those of the system.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// How much room there is.
    ///
    /// # Errors
    /// Those of the system.
    fn space(&self, dir: &Path) -> io::Result<Space>;
}

/// A file that is being written.
pub trait DiskFile: Send {
    /// Appends all of it.
    ///
    /// # Errors
    /// Those of the system; some of it may have been written.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes its bytes durable.
    ///
    /// # Errors
    /// Those of the system; what was not synced before may be lost.
    fn sync(&mut self) -> io::Result<()>;
    /// Cuts it to a length; the next append goes there.
    ///
    /// # Errors
    /// Those of the system.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
    /// Whether the file still has a name. One that was deleted under us takes every byte and keeps none.
    fn is_linked(&self) -> bool;
}

/// The file system.
#[derive(Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        // Appending keeps the position right after a truncation.
        Ok(Box::new(OpenOptions::new().append(true).create_new(true).open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn space(&self, dir: &Path) -> io::Result<Space> {
        let found = rustix::fs::statvfs(dir)?;
        Ok(Space {
            total: found.f_blocks.saturating_mul(found.f_frsize),
            free: found.f_bavail.saturating_mul(found.f_frsize),
        })
    }
}

impl DiskFile for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn is_linked(&self) -> bool {
        self.metadata().is_ok_and(|m| m.nlink() > 0)
    }
}
