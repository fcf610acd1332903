//! The user that the server runs as: PostgreSQL refuses root, so root steps down.

use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::ClusterError;

/// The user that root's servers run as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: &'static str,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Account {
    /// Whom to step down to: `None` when this process is not root and runs the server as itself.
    pub(crate) fn choose() -> Result<Option<Account>, ClusterError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        ["postgres", "nobody"].into_iter().find_map(look_up).map(Some).ok_or(ClusterError::NoAccount)
    }

    /// Makes a file or directory the account's own.
    pub(crate) fn give(account: Option<&Account>, path: &Path) -> Result<(), ClusterError> {
        let Some(account) = account else { return Ok(()) };
        chown(path, Some(account.uid), Some(account.gid)).map_err(ClusterError::io("give away", path))
    }

    /// Checks that the account can pass through every directory above `path` and through `path` itself.
    pub(crate) fn check_reach(account: Option<&Account>, path: &Path) -> Result<(), ClusterError> {
        let Some(account) = account else { return Ok(()) };
        let ancestors: Vec<&Path> = path.ancestors().collect();
        for dir in ancestors.into_iter().rev() {
            let metadata = dir.metadata().map_err(ClusterError::io("look at", dir))?;
            if !account.may_pass(&metadata) {
                return Err(ClusterError::Unreachable {
                    user: account.name.to_owned(),
                    path: dir.to_path_buf(),
                });
            }
        }
        Ok(())
    }

    fn may_pass(&self, dir: &Metadata) -> bool {
        let needed = if dir.uid() == self.uid {
            0o100
        } else if dir.gid() == self.gid {
            0o010
        } else {
            0o001
        };
        dir.mode() & needed != 0
    }
}

fn look_up(name: &'static str) -> Option<Account> {
    Some(Account { name, uid: id_of("-u", name)?, gid: id_of("-g", name)? })
}

/// `id` knows every source of users that the machine has, `/etc/passwd` is only one of them.
fn id_of(which: &str, name: &str) -> Option<u32> {
    let said = Command::new("id").args([which, name]).stderr(Stdio::null()).output().ok()?;
    String::from_utf8(said.stdout).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, create_dir, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_closed_directory_on_the_way_is_named() {
        let stranger = Account { name: "stranger", uid: 4_000_001, gid: 4_000_001 };
        let top = tempfile::tempdir().unwrap();
        set_permissions(top.path(), Permissions::from_mode(0o755)).unwrap();
        let closed = top.path().join("closed");
        let inner = closed.join("inner");
        create_dir(&closed).unwrap();
        create_dir(&inner).unwrap();

        set_permissions(&closed, Permissions::from_mode(0o755)).unwrap();
        Account::check_reach(Some(&stranger), &inner).unwrap();

        set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();
        match Account::check_reach(Some(&stranger), &inner).unwrap_err() {
            ClusterError::Unreachable { user, path } => {
                assert_eq!((user.as_str(), path), ("stranger", closed))
            }
            other => panic!("{other}"),
        }
        Account::check_reach(None, &inner).unwrap();
    }
}
