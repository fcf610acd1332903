//! `queen-server healthcheck`: asks the broker on this machine, so that a container needs no other program for it.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use queen_config::Sources;

use crate::args::HealthArgs;

/// Bound on all of it; below the time that those who run health checks usually give.
const PATIENCE: Duration = Duration::from_secs(3);
/// Longest answer that is read.
const ANSWER_MAX: u64 = 64 * 1024;

/// Exits 0 when the broker answers 200, and tells on stderr why not otherwise.
pub(crate) fn run(args: HealthArgs) -> anyhow::Result<ExitCode> {
    let loaded = queen_config::load(&Sources::from_process(args.config.0))?;
    let addr = local(loaded.config.http.bind);
    let path = if args.ready { "/readyz" } else { "/livez" };
    let (status, body) = get(addr, path).with_context(|| format!("GET http://{addr}{path}"))?;
    if status != 200 {
        bail!("GET http://{addr}{path} answers {status}: {body}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Where a listener is reached from its own machine.
fn local(bind: SocketAddr) -> SocketAddr {
    let ip = match bind.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, bind.port())
}

/// Status and body.
fn get(addr: SocketAddr, path: &str) -> anyhow::Result<(u16, String)> {
    let end = Instant::now() + PATIENCE;
    let left = || end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    let mut stream = TcpStream::connect_timeout(&addr, PATIENCE)?;
    stream.set_write_timeout(Some(left()))?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {addr}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    while (answer.len() as u64) < ANSWER_MAX {
        stream.set_read_timeout(Some(left()))?;
        match stream.read(&mut part)? {
            0 => break,
            length => answer.extend_from_slice(part.get(..length).unwrap_or_default()),
        }
    }
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n").context("this is no HTTP answer")?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok((status.context("this is no HTTP answer")?, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_asked_where_it_listens() {
        let table = [
            ("0.0.0.0:6632", "127.0.0.1:6632"),
            ("[::]:1", "[::1]:1"),
            ("127.0.0.1:2", "127.0.0.1:2"),
            ("192.0.2.7:3", "192.0.2.7:3"),
        ];
        for (bind, asked) in table {
            assert_eq!(local(bind.parse().unwrap()), asked.parse().unwrap(), "{bind}");
        }
    }
}
