//! Signals and what the system knows about a process.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) use rustix::process::Signal;
use rustix::process::{Pid, kill_process};

/// Sends a signal; a process that is gone is no error.
pub(crate) fn send(pid: i32, signal: Signal) {
    // Only 1 and above name one process: 0 and below would reach whole groups.
    if pid > 1
        && let Some(pid) = Pid::from_raw(pid)
    {
        let _ = kill_process(pid, signal);
    }
}

/// The arguments of a living process, joined by spaces; `None` for one that is gone or only waits to be reaped.
pub(crate) fn command_line(pid: i32) -> Option<String> {
    let from_proc = std::fs::read(format!("/proc/{pid}/cmdline"));
    let text = match from_proc {
        Ok(bytes) => String::from_utf8_lossy(&bytes).replace('\0', " "),
        Err(_) if std::path::Path::new("/proc/self/cmdline").exists() => return None,
        Err(_) => ask_ps(&["-ww", "-o", "command=", "-p", &pid.to_string()])?,
    };
    let text = text.trim();
    // A zombie has no arguments left.
    (!text.is_empty() && !text.contains("<defunct>")).then(|| text.to_owned())
}

/// Whether a process runs; one that only waits to be reaped does not.
pub(crate) fn runs(pid: i32) -> bool {
    command_line(pid).is_some()
}

/// The processes whose parent is `pid`.
pub(crate) fn children_of(pid: i32) -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        let listed = ask_ps(&["-A", "-o", "ppid=,pid="]).unwrap_or_default();
        return listed.lines().filter_map(|line| child_in_listing(line, pid)).collect();
    };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|child| parent_of(*child) == Some(pid)).collect()
}

fn child_in_listing(line: &str, parent: i32) -> Option<i32> {
    let mut words = line.split_whitespace();
    let is_child = words.next()?.parse::<i32>().ok()? == parent;
    if is_child { words.next()?.parse().ok() } else { None }
}

/// `/proc/<pid>/stat` is `pid (name) state ppid ...`, and the name may hold anything, brackets included.
fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn ask_ps(arguments: &[&str]) -> Option<String> {
    let said = Command::new("ps").args(arguments).stderr(Stdio::null()).output().ok()?;
    String::from_utf8(said.stdout).ok()
}

/// Polls until `done` holds; false when it does not within `limit`.
pub(crate) async fn wait(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !done() {
        if start.elapsed() > limit {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    true
}

/// The same for places that cannot await.
pub(crate) fn wait_blocking(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !done() {
        if start.elapsed() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_seen_until_it_is_killed() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = child.id() as i32;
        assert!(children_of(std::process::id() as i32).contains(&pid));
        assert!(wait_blocking(Duration::from_secs(5), || command_line(pid).as_deref() == Some("sleep 1000")));
        send(pid, Signal::KILL);
        assert!(wait_blocking(Duration::from_secs(5), || !runs(pid)), "a zombie does not run");
        child.wait().unwrap();
        send(pid, Signal::KILL);
    }
}
