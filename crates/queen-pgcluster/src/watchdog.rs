//! Takes an ephemeral cluster down when its owner is gone, even when the owner was killed.
//!
//! A small shell process reads from a pipe whose other end only the owner holds. Each line names the process to
//! end. When the pipe closes, it ends that process and deletes the directory.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::ClusterError;

/// The signals that a terminal or a test runner sends to a whole group are not meant for it. It asks for an
/// immediate shutdown, and kills after five seconds.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
pid=0
while read -r line; do pid=$line; done
if [ "$pid" -gt 1 ]; then
  kill -QUIT "$pid" 2>/dev/null
  tries=0
  while [ "$tries" -lt 100 ] && kill -0 "$pid" 2>/dev/null; do
    sleep 0.05
    tries=$((tries + 1))
  done
  kill -KILL "$pid" 2>/dev/null
fi
rm -rf -- "$1" "$2"
"#;

#[derive(Debug)]
pub(crate) struct Watchdog {
    pipe: Option<ChildStdin>,
    process: Child,
}

impl Watchdog {
    /// Starts to watch; both directories are deleted at the end.
    pub(crate) fn start(data_dir: &Path, socket_dir: &Path) -> Result<Watchdog, ClusterError> {
        let mut process = Command::new("sh")
            .args(["-c", SCRIPT, "queen-pg-watchdog"])
            .args([data_dir, socket_dir])
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(ClusterError::io("start a watchdog for", data_dir))?;
        Ok(Watchdog { pipe: process.stdin.take(), process })
    }

    /// Names the process to end from here on; 0 for none.
    pub(crate) fn guard(&mut self, pid: i32) {
        if let Some(pipe) = &mut self.pipe {
            let _ = writeln!(pipe, "{pid}");
        }
    }
}

impl Drop for Watchdog {
    /// Closes the pipe and waits until the directory is gone.
    fn drop(&mut self) {
        self.pipe = None;
        let _ = self.process.wait();
    }
}
