//! Who owns a data directory: a locked file with the owner's pid in it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::ClusterError;

/// Held for as long as this value lives; the system lets go when the process dies, however it dies.
#[derive(Debug)]
pub(crate) struct OwnerLock {
    _file: File,
}

impl OwnerLock {
    /// Takes the directory, or says who holds it.
    pub(crate) fn take(data_dir: &Path) -> Result<OwnerLock, ClusterError> {
        let path = data_dir.join("owner.lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(ClusterError::io("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(ClusterError::Held {
                    data_dir: data_dir.to_path_buf(),
                    pid: read_pid(&mut file),
                });
            }
            Err(TryLockError::Error(error)) => return Err(ClusterError::io("lock", &path)(error)),
        }
        write_pid(&mut file).map_err(ClusterError::io("write", &path))?;
        Ok(OwnerLock { _file: file })
    }
}

fn write_pid(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{}", std::process::id())?;
    file.flush()
}

/// 0 when the holder has not written its pid yet.
fn read_pid(file: &mut File) -> i32 {
    let mut text = String::new();
    if file.read_to_string(&mut text).is_err() {
        return 0;
    }
    text.trim().parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_owner_learns_the_pid_of_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let first = OwnerLock::take(dir.path()).unwrap();
        match OwnerLock::take(dir.path()).unwrap_err() {
            ClusterError::Held { pid, .. } => assert_eq!(pid, std::process::id() as i32),
            other => panic!("{other}"),
        }
        drop(first);
        OwnerLock::take(dir.path()).unwrap();
    }
}
