//! Making the cluster's files, once.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::account::Account;
use crate::{Binaries, ClusterError};

/// Variables with which a user's shell would change what the server or initdb does.
const FOREIGN_VARIABLES: [&str; 8] =
    ["PGDATA", "PGPORT", "PGHOST", "PGUSER", "PGDATABASE", "PGOPTIONS", "PGCLIENTENCODING", "PGDATESTYLE"];

/// A command that runs as the account, in a directory that it can enter, and speaks English.
pub(crate) fn command(program: PathBuf, dir: &Path, account: Option<&Account>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(dir).stdin(Stdio::null()).env("LC_ALL", "C");
    for name in FOREIGN_VARIABLES {
        command.env_remove(name);
    }
    if let Some(account) = account {
        // As root, the standard library drops the supplementary groups with the user.
        command.uid(account.uid).gid(account.gid);
    }
    command
}

/// Makes `pgdata` unless it exists. The files are made beside it and renamed when they are complete, so that an
/// interrupted initdb is simply done again. `started` learns the pid of each run.
pub(crate) fn ensure(
    binaries: &Binaries,
    account: Option<&Account>,
    pgdata: &Path,
    password: Option<&str>,
    fsync: bool,
    mut started: impl FnMut(i32),
) -> Result<(), ClusterError> {
    if pgdata.join("PG_VERSION").exists() {
        return Ok(());
    }
    let fresh = pgdata.with_extension("new");
    // Not every system has C.UTF-8; both sort by code point.
    let mut said = Ok(());
    for locale in ["C.UTF-8", "C"] {
        said = run(binaries, account, &fresh, password, fsync, locale, &mut started)?;
        if !said.as_ref().is_err_and(|said| said.contains("locale")) {
            break;
        }
    }
    if let Err(output) = said {
        let _ = fs::remove_dir_all(&fresh);
        return Err(ClusterError::Failed { program: "initdb", output });
    }
    fs::rename(&fresh, pgdata).map_err(ClusterError::io("complete", pgdata))
}

/// The inner error is what initdb said when it failed.
fn run(
    binaries: &Binaries,
    account: Option<&Account>,
    fresh: &Path,
    password: Option<&str>,
    fsync: bool,
    locale: &str,
    started: &mut impl FnMut(i32),
) -> Result<Result<(), String>, ClusterError> {
    let _ = fs::remove_dir_all(fresh);
    fs::create_dir(fresh).map_err(ClusterError::io("make", fresh))?;
    Account::give(account, fresh)?;

    let mut initdb = command(binaries.program("initdb"), fresh, account);
    initdb.arg("-D").arg(fresh).args(["-U", "postgres", "--encoding=UTF8", "--no-instructions"]);
    initdb.arg(format!("--locale={locale}"));
    if !fsync {
        initdb.arg("--no-sync");
    }
    let password_file = fresh.with_extension("password");
    match password {
        Some(password) => {
            write_private(&password_file, password)?;
            Account::give(account, &password_file)?;
            initdb.arg("--auth=scram-sha-256").arg("--pwfile").arg(&password_file);
        }
        None => {
            initdb.arg("--auth=trust");
        }
    }
    initdb.stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    let said = initdb.spawn().and_then(|child| {
        started(child.id().cast_signed());
        child.wait_with_output()
    });
    let _ = fs::remove_file(&password_file);
    let said = said.map_err(ClusterError::io("run initdb for", fresh))?;
    if said.status.success() {
        return Ok(Ok(()));
    }
    Ok(Err(String::from_utf8_lossy(&said.stderr).trim().to_owned()))
}

/// The password recorded in a file; made when there is none.
pub(crate) fn ensure_password(path: &Path) -> Result<String, ClusterError> {
    match fs::read_to_string(path) {
        Ok(text) if !text.trim().is_empty() => return Ok(text.trim().to_owned()),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(ClusterError::io("read", path)(error)),
    }
    let password = random_hex(24)?;
    write_private(path, &password)?;
    Ok(password)
}

fn write_private(path: &Path, text: &str) -> Result<(), ClusterError> {
    let write = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        writeln!(file, "{text}")
    };
    write().map_err(ClusterError::io("write", path))
}

/// Random bytes from the system, two digits each.
pub(crate) fn random_hex(bytes: usize) -> Result<String, ClusterError> {
    let source = "/dev/urandom";
    let mut random = vec![0; bytes];
    let mut file = fs::File::open(source).map_err(ClusterError::io("open", source))?;
    file.read_exact(&mut random).map_err(ClusterError::io("read", source))?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_made_once_and_kept_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        let first = ensure_password(&path).unwrap();
        assert_eq!(first.len(), 48);
        assert_eq!(ensure_password(&path).unwrap(), first);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_ne!(ensure_password(&dir.path().join("other")).unwrap(), first);
    }
}
