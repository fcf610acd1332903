//! A keep-alive HTTP/1.1 connection that sends a request and reads the answer. Enough for a broker on loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, ensure};

pub(crate) struct Connection {
    host: String,
    stream: BufReader<TcpStream>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Connection {
    /// Connects to `http://host:port`.
    pub(crate) fn open(url: &str) -> anyhow::Result<Connection> {
        let host = url.strip_prefix("http://").context("the address must begin with http://")?;
        let host = host.trim_end_matches('/').to_owned();
        let stream = TcpStream::connect(&host).with_context(|| format!("connect to {host}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Connection { host, stream: BufReader::new(stream) })
    }

    pub(crate) fn get(&mut self, path: &str) -> anyhow::Result<Answer> {
        self.call("GET", path, b"")
    }

    pub(crate) fn post(&mut self, path: &str, body: &[u8]) -> anyhow::Result<Answer> {
        self.call("POST", path, body)
    }

    fn call(&mut self, method: &str, path: &str, body: &[u8]) -> anyhow::Result<Answer> {
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n\r\n",
            self.host,
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        self.stream.get_mut().write_all(&request).context("send a request")?;
        self.answer().with_context(|| format!("{method} {path}"))
    }

    fn answer(&mut self) -> anyhow::Result<Answer> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).context("no status line")?;
        let mut length = 0;
        loop {
            line.clear();
            ensure!(self.stream.read_line(&mut line)? > 0, "the connection ended inside the headers");
            let header = line.trim_end().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().context("a content-length that is no number")?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).context("read a body")?;
        Ok(Answer { status, body })
    }
}
