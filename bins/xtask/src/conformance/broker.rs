//! A broker process for the suite.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tempfile::TempDir;

use crate::repo;

const START_LIMIT: Duration = Duration::from_secs(60);
/// What the names of the broker's variables begin with.
const SETTINGS: [&str; 5] = ["QUEEN_", "PG_", "DB_", "FILE_BUFFER_", "RETENTION_"];

const STOP_LIMIT: Duration = Duration::from_secs(15);

/// A running broker; dropped, it is told to stop, and killed if it does not.
pub(crate) struct Broker {
    process: Child,
    port: u16,
    log: PathBuf,
    _spool: TempDir,
}

impl Broker {
    /// Starts a broker with default settings on a database that nobody used, and waits until it is healthy.
    pub(crate) fn start(binary: &Path, pg_port: u16) -> anyhow::Result<Broker> {
        let spool = tempfile::tempdir().context("make a spool directory")?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let log = repo::target().join("conformance-broker.log");
        let output = File::create(&log).with_context(|| format!("create {}", log.display()))?;
        let mut command = Command::new(binary);
        // The suite wants default settings, whatever the caller's shell exports.
        for (name, _) in std::env::vars_os() {
            if SETTINGS.iter().any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes())) {
                command.env_remove(name);
            }
        }
        let process = command
            .env("QUEEN_BIND_ADDR", "127.0.0.1")
            .env("PORT", port.to_string())
            .env("PG_HOST", "127.0.0.1")
            .env("PG_PORT", pg_port.to_string())
            .env("PG_USER", "postgres")
            .env("PG_PASSWORD", "postgres")
            .env("PG_DATABASE", "postgres")
            .env("FILE_BUFFER_DIR", spool.path())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("start {}", binary.display()))?;
        let mut broker = Broker { process, port, log, _spool: spool };
        broker.wait_healthy()?;
        Ok(broker)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// The end of its log.
    pub(crate) fn last_words(&self) -> String {
        let text = std::fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let text = text.unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    fn wait_healthy(&mut self) -> anyhow::Result<()> {
        let start = Instant::now();
        while !is_healthy(self.port) {
            if let Some(status) = self.process.try_wait()? {
                bail!("the broker ended with {status}:\n{}", self.last_words());
            }
            if start.elapsed() > START_LIMIT {
                bail!("the broker was not healthy within {START_LIMIT:?}:\n{}", self.last_words());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        println!("broker on port {}, healthy after {:.1} s", self.port, start.elapsed().as_secs_f64());
        Ok(())
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let start = Instant::now();
        while matches!(self.process.try_wait(), Ok(None)) {
            if start.elapsed() > STOP_LIMIT {
                eprintln!("the broker did not stop within {STOP_LIMIT:?} and is killed");
                let _ = self.process.kill();
                let _ = self.process.wait();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Whether `GET /health` answers 200.
fn is_healthy(port: u16) -> bool {
    let ask = || -> std::io::Result<String> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(2))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}
