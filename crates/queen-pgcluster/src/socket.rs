//! The directory of the unix socket.

use std::fs::{DirBuilder, create_dir_all};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::account::Account;
use crate::{ClusterError, initdb};

/// The shortest `sun_path` among the systems we run on holds 104 bytes with its NUL; the name that the server
/// adds, `/.s.PGSQL.65535`, and its lock file `.lock` do not count towards the socket's own 15.
const DIR_BYTES_MAX: usize = 104 - 1 - "/.s.PGSQL.65535".len();

/// Makes the socket directory: `sock` in the data directory, or a short one under `/tmp` when the path would not
/// fit into a socket address, or when it holds a character that separates the server's list of directories.
pub(crate) fn make_dir(data_dir: &Path, account: Option<&Account>) -> Result<PathBuf, ClusterError> {
    let inside = data_dir.join("sock");
    let dir = if fits(&inside) {
        create_dir_all(&inside).map_err(ClusterError::io("make", &inside))?;
        inside
    } else {
        let short = PathBuf::from(format!("/tmp/queen-pg-{}", initdb::random_hex(8)?));
        DirBuilder::new().mode(0o700).create(&short).map_err(ClusterError::io("make", &short))?;
        short
    };
    Account::give(account, &dir)?;
    Ok(dir)
}

/// Removes a socket directory that is not part of the data directory.
pub(crate) fn remove_dir(data_dir: &Path, socket_dir: &Path) {
    if !socket_dir.starts_with(data_dir) {
        let _ = std::fs::remove_dir_all(socket_dir);
    }
}

fn fits(dir: &Path) -> bool {
    let bytes = dir.as_os_str().as_bytes();
    bytes.len() <= DIR_BYTES_MAX && !bytes.iter().any(|byte| matches!(byte, b',' | b'"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_gets_a_short_directory() {
        let dir = tempfile::tempdir().unwrap();
        let near = make_dir(dir.path(), None).unwrap();
        assert_eq!(near, dir.path().join("sock"));
        remove_dir(dir.path(), &near);
        assert!(near.exists(), "it belongs to the data directory");

        let deep = dir.path().join("x".repeat(100));
        let far = make_dir(&deep, None).unwrap();
        assert!(fits(&far) && far.starts_with("/tmp"), "{far:?}");
        remove_dir(&deep, &far);
        assert!(!far.exists());
    }

    #[test]
    fn separators_of_the_servers_list_do_not_fit() {
        assert!(fits(Path::new("/a/b c/sock")));
        assert!(!fits(Path::new("/a,b/sock")));
    }
}
