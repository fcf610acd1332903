//! Where PostgreSQL's server binaries are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::ClusterError;

/// The oldest supported major version.
const MAJOR_MIN: u32 = 14;

/// Parents of `<version>/bin`: Debian and PGDG on Debian; PGDG on Fedora and its kin (`pgsql-17/bin`);
/// Homebrew on ARM, Intel and Linux (`postgresql@17/bin`); Alpine (`postgresql17/bin`); Postgres.app.
const VERSIONED: [(&str, &str); 7] = [
    ("/usr/lib/postgresql", ""),
    ("/usr", "pgsql-"),
    ("/opt/homebrew/opt", "postgresql"),
    ("/usr/local/opt", "postgresql"),
    ("/home/linuxbrew/.linuxbrew/opt", "postgresql"),
    ("/usr/libexec", "postgresql"),
    ("/Applications/Postgres.app/Contents/Versions", ""),
];

/// A directory that holds `initdb` and `postgres`, and their version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    dir: PathBuf,
    major: u32,
}

impl Binaries {
    /// The newest binaries of this machine: those of PATH (followed through symbolic links) and those in the
    /// places where packages put them.
    ///
    /// # Errors
    /// [`ClusterError::NotFound`] says what to install, [`ClusterError::TooOld`] what was found instead.
    pub fn find() -> Result<Binaries, ClusterError> {
        newest(find_all())
    }

    /// The binaries in a directory that somebody named.
    ///
    /// # Errors
    /// [`ClusterError::BadBinDir`] when it does not hold both, [`ClusterError::TooOld`] before version 14.
    pub fn in_dir(dir: impl AsRef<Path>) -> Result<Binaries, ClusterError> {
        let found = probe(dir.as_ref())?;
        newest(vec![found])
    }

    /// As [`Binaries::find`], preferring the major version that made a directory.
    pub(crate) fn find_for(major: Option<u32>) -> Result<Binaries, ClusterError> {
        let all = find_all();
        match all.iter().find(|found| Some(found.major) == major) {
            Some(exact) => Ok(exact.clone()),
            None => newest(all),
        }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The major version, such as 15.
    pub fn major(&self) -> u32 {
        self.major
    }

    /// The full path of one of the programs.
    pub fn program(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

fn newest(found: Vec<Binaries>) -> Result<Binaries, ClusterError> {
    let best = found.into_iter().reduce(|best, next| if next.major > best.major { next } else { best });
    match best {
        Some(best) if best.major >= MAJOR_MIN => Ok(best),
        Some(old) => Err(ClusterError::TooOld { dir: old.dir, found: old.major }),
        None => {
            let places = VERSIONED.map(|(parent, prefix)| format!("{parent}/{prefix}*/bin"));
            Err(ClusterError::NotFound { looked_in: places.join(", ") })
        }
    }
}

fn find_all() -> Vec<Binaries> {
    let mut dirs: Vec<PathBuf> = on_path().into_iter().collect();
    for (parent, prefix) in VERSIONED {
        dirs.extend(versioned_dirs(Path::new(parent), prefix));
    }
    dirs.push(PathBuf::from("/usr/local/pgsql/bin"));
    dirs.iter().filter_map(|dir| probe(dir).ok()).collect()
}

/// The shell looks `initdb` up, so that this crate need not read the environment.
fn on_path() -> Option<PathBuf> {
    let found = Command::new("sh").args(["-c", "command -v initdb"]).stderr(Stdio::null()).output().ok()?;
    let program = PathBuf::from(String::from_utf8(found.stdout).ok()?.trim_end());
    program.canonicalize().ok()?.parent().map(Path::to_path_buf)
}

fn versioned_dirs(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = parent.read_dir() else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path().join("bin"))
        .filter(|bin| bin.join("initdb").exists())
        .collect()
}

fn probe(dir: &Path) -> Result<Binaries, ClusterError> {
    let bad = |reason: String| ClusterError::BadBinDir { dir: dir.to_path_buf(), reason };
    if !dir.join("initdb").exists() {
        return Err(bad("there is no initdb in it".to_owned()));
    }
    let said = Command::new(dir.join("postgres"))
        .arg("--version")
        .stderr(Stdio::null())
        .output()
        .map_err(|error| bad(format!("cannot run postgres: {error}")))?;
    let text = String::from_utf8_lossy(&said.stdout);
    let major = parse_major(&text).ok_or_else(|| bad(format!("`postgres --version` says {text:?}")))?;
    Ok(Binaries { dir: dir.to_path_buf(), major })
}

/// Reads `postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)`, `... 18beta1`, `... 9.6.24`.
fn parse_major(version: &str) -> Option<u32> {
    let number = version.split("(PostgreSQL)").nth(1)?.trim_start();
    let digits: &str = number.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(parse_major("postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)\n"), Some(15));
        assert_eq!(parse_major("postgres (PostgreSQL) 18beta1\n"), Some(18));
        assert_eq!(parse_major("postgres (PostgreSQL) 9.6.24\n"), Some(9));
        assert_eq!(parse_major("mysqld 8\n"), None);
    }

    #[test]
    fn the_newest_wins_and_old_ones_are_refused() {
        let at = |major| Binaries { dir: PathBuf::from(format!("/pg/{major}")), major };
        assert_eq!(newest(vec![at(14), at(17), at(15)]).unwrap(), at(17));
        assert!(matches!(newest(vec![at(13), at(12)]), Err(ClusterError::TooOld { found: 13, .. })));
    }

    #[test]
    fn nothing_found_says_what_to_install() {
        let text = newest(Vec::new()).unwrap_err().to_string();
        for part in ["apt-get install postgresql", "dnf install", "brew install", "/usr/lib/postgresql/*/bin"]
        {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_named_directory_without_binaries_is_refused() {
        let empty = tempfile::tempdir().unwrap();
        let text = Binaries::in_dir(empty.path()).unwrap_err().to_string();
        assert!(text.contains("no initdb"), "{text}");
    }
}
