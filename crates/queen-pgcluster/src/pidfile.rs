//! `postmaster.pid`, the file in which a running server says where it listens and whether it is ready.

use std::path::{Path, PathBuf};

use crate::process;

/// What `postmaster.pid` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PidFile {
    pub(crate) pid: i32,
    pub(crate) port: u16,
    pub(crate) socket_dir: PathBuf,
    pub(crate) ready: bool,
}

impl PidFile {
    /// `None` while the file is absent or not filled in yet.
    pub(crate) fn read(pgdata: &Path) -> Option<PidFile> {
        parse(&std::fs::read_to_string(pgdata.join("postmaster.pid")).ok()?)
    }

    /// The same, if that process lives and is a postmaster of this directory: after a crash of the machine the
    /// pid in the file may belong to anybody.
    pub(crate) fn read_living(pgdata: &Path) -> Option<PidFile> {
        let file = PidFile::read(pgdata)?;
        let command = process::command_line(file.pid)?;
        command.contains(&pgdata.display().to_string()).then_some(file)
    }
}

/// Lines: pid, data directory, start time, port, socket directory, listen address, shared memory key, status.
fn parse(text: &str) -> Option<PidFile> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    Some(PidFile {
        pid: lines.first()?.parse().ok()?,
        port: lines.get(3)?.parse().ok()?,
        socket_dir: PathBuf::from(lines.get(4)?),
        ready: lines.get(7) == Some(&"ready"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ready_server_is_recognised() {
        let text = "4711\n/d/pgdata\n1763\n54321\n/d/sock\n127.0.0.1\n  1234   5\nready   \n";
        let expected = PidFile { pid: 4711, port: 54321, socket_dir: PathBuf::from("/d/sock"), ready: true };
        assert_eq!(parse(text), Some(expected));
    }

    #[test]
    fn a_starting_server_is_not_ready() {
        let text = "4711\n/d/pgdata\n1763\n54321\n/d/sock\n127.0.0.1\n  1234   5\nstarting\n";
        assert!(!parse(text).unwrap().ready);
        assert!(!parse("4711\n/d/pgdata\n1763\n54321\n/d/sock\n").unwrap().ready);
        assert_eq!(parse("4711\n/d/pgdata\n"), None);
        assert_eq!(parse(""), None);
    }
}
