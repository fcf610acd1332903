//! Pushes that were accepted and that the database has not seen yet: files in a directory of this broker alone.
//!
//! [`Spool`] is the directory: it appends events and answers when they are on disk, closes files, hands them to whoever
//! replays them, and sets aside what can never be stored. [`Drain`] is the decision what to do next, as a state machine
//! without I/O: its driver lists files, reads events, pushes them and tells what became of it.
//!
//! Nothing that was accepted is ever deleted before it is stored, or stands in quarantine, or an operator asks for it.

mod crc;
mod disk;
mod drain;
mod error;
mod event;
mod format;
mod ledger;
mod name;
mod options;
mod place;
mod quarantine;
mod reader;
mod spool;
mod writer;

pub use disk::{Disk, DiskFile, RealDisk, Space};
pub use drain::{Drain, DrainOptions, Meta, Read, Reason, Step, Verdict};
pub use error::{OpenError, Refused};
pub use event::{Event, Unreadable};
pub use ledger::{FileState, FileStatus, Status};
pub use options::{FsyncMode, OnConflict, SpoolOptions};
pub use quarantine::{Aside, Listing, QuarantineError, Quarantined};
pub use reader::{Entry, FileReader};
pub use spool::Spool;
