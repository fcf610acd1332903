//! One running postmaster: started or adopted, signalled, waited for.

use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::account::Account;
use crate::pidfile::PidFile;
use crate::process::{self, Signal};
use crate::{Binaries, ClusterError, initdb};

/// Recovery of a large cluster after a crash may take minutes; a server that fails is noticed at once.
const START_LIMIT: Duration = Duration::from_secs(300);
const DROP_LIMIT: Duration = Duration::from_secs(5);

/// What a postmaster is started from.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) binaries: Binaries,
    pub(crate) account: Option<Account>,
    pub(crate) data_dir: PathBuf,
    pub(crate) pgdata: PathBuf,
    pub(crate) socket_dir: PathBuf,
    /// Settings as `name=value`, without the addresses.
    pub(crate) settings: Vec<String>,
}

/// A postmaster. Dropped, it is stopped at once.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) pid: i32,
    /// Absent for an adopted one, whose end nobody here has to collect.
    child: Option<Child>,
    over: bool,
}

impl Server {
    pub(crate) fn adopt(pid: i32) -> Server {
        Server { pid, child: None, over: false }
    }

    /// Starts a postmaster; it is not ready yet.
    pub(crate) fn spawn(launch: &Launch, port: u16) -> Result<Server, ClusterError> {
        let log_path = launch.data_dir.join("postgres.log");
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log_path)
            .map_err(ClusterError::io("open", &log_path))?;
        let mut postgres =
            initdb::command(launch.binaries.program("postgres"), &launch.pgdata, launch.account.as_ref());
        postgres.arg("-D").arg(&launch.pgdata);
        let addresses = [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={port}"),
            format!("unix_socket_directories={}", launch.socket_dir.display()),
        ];
        for setting in addresses.iter().chain(&launch.settings) {
            postgres.arg("-c").arg(setting);
        }
        // Its own group: an interrupt typed at the owner's terminal is for the owner, who then stops the server.
        let child = postgres
            .process_group(0)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(ClusterError::io("start postgres in", &launch.pgdata))?;
        Ok(Server { pid: child.id().cast_signed(), child: Some(child), over: false })
    }

    /// Waits until the server accepts connections.
    pub(crate) async fn wait_ready(&mut self, launch: &Launch) -> Result<PidFile, ClusterError> {
        let start = Instant::now();
        loop {
            let file = PidFile::read(&launch.pgdata).filter(|file| file.pid == self.pid && file.ready);
            if let Some(file) = file {
                return Ok(file);
            }
            if self.is_over() {
                let output = tail_of(&launch.data_dir.join("postgres.log"));
                return Err(ClusterError::Failed { program: "postgres", output });
            }
            if start.elapsed() > START_LIMIT {
                return Err(ClusterError::TimedOut {
                    data_dir: launch.data_dir.clone(),
                    what: "become ready",
                    seconds: START_LIMIT.as_secs(),
                });
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if !self.over {
            process::send(self.pid, signal);
        }
    }

    /// Whether the process has ended; collects it when it is a child.
    pub(crate) fn is_over(&mut self) -> bool {
        if !self.over {
            self.over = match &mut self.child {
                Some(child) => !matches!(child.try_wait(), Ok(None)),
                None => !process::runs(self.pid),
            };
        }
        self.over
    }

    /// Kills the postmaster and all its processes as `kill -9` does, and waits until they are gone: while one
    /// of them holds the shared memory no other server can start.
    pub(crate) async fn kill(&mut self) -> bool {
        let children = process::children_of(self.pid);
        self.signal(Signal::KILL);
        for pid in &children {
            process::send(*pid, Signal::KILL);
        }
        let all_gone = || self.is_over() && !children.iter().any(|pid| process::runs(*pid));
        process::wait(Duration::from_secs(10), all_gone).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.is_over() {
            return;
        }
        self.signal(Signal::QUIT);
        if !process::wait_blocking(DROP_LIMIT, || self.is_over()) {
            self.signal(Signal::KILL);
            process::wait_blocking(DROP_LIMIT, || self.is_over());
        }
    }
}

/// The last lines of the server's log, where the reason of a failed start stands.
fn tail_of(log: &Path) -> String {
    let text =
        std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}
