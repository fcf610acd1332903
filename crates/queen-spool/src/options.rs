use std::path::PathBuf;
use std::time::Duration;

/// When accepted events are synced to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FsyncMode {
    /// Every event by itself.
    Always,
    /// Whatever came meanwhile shares a sync, and an event counts as accepted after it.
    #[default]
    Batch,
    /// Not at all: a power loss may take accepted events away.
    Never,
}

/// What a broker does whose directory belongs to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnConflict {
    /// Refuse to start.
    #[default]
    Refuse,
    /// Use a directory of its own inside, named after the broker.
    Subdir,
}

/// How a spool works.
#[derive(Debug, Clone)]
pub struct SpoolOptions {
    /// The directory: on this node, of this broker alone.
    pub dir: PathBuf,
    /// Identity of the broker, for the lock and the files.
    pub server_id: String,
    /// Events of one file, at least 1.
    pub events_per_file: u64,
    /// Bytes of one file; an event that is larger gets a file of its own.
    pub bytes_per_file: u64,
    /// Ceiling of all files together; 0: none.
    pub max_bytes: u64,
    /// Free space that stays free, but never more than a twentieth of the file system.
    pub min_free_bytes: u64,
    /// When events are synced.
    pub fsync: FsyncMode,
    /// Longest gap between two syncs while events keep coming.
    pub fsync_gap: Duration,
    /// What happens when the directory is taken.
    pub on_conflict: OnConflict,
    /// A file that can be moved nowhere is deleted. Off: it stays.
    pub delete_unmovable: bool,
    /// How often a spool that nobody writes to tries whether it could be written.
    pub probe_every: Duration,
}

impl SpoolOptions {
    /// The defaults of the product for a directory.
    pub fn at(dir: impl Into<PathBuf>) -> SpoolOptions {
        SpoolOptions {
            dir: dir.into(),
            server_id: "queen".to_owned(),
            events_per_file: 10_000,
            bytes_per_file: 64 * 1024 * 1024,
            max_bytes: 0,
            min_free_bytes: 64 * 1024 * 1024,
            fsync: FsyncMode::Batch,
            fsync_gap: Duration::from_millis(5),
            on_conflict: OnConflict::Refuse,
            delete_unmovable: false,
            probe_every: Duration::from_secs(60),
        }
    }
}
