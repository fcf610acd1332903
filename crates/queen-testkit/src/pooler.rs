//! A pooler in transaction mode: what a broker must not be given instead of its sessions.

use anyhow::Context;
use queen_pg::PgOptions;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Semaphore};

/// Which connection to the server the next transaction gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The one that was used last, as PgBouncer does.
    Last,
    /// The one that has rested longest.
    Longest,
}

/// A pooler in transaction mode: it logs in to the server itself, and gives each transaction of a client a free connection.
#[derive(Debug)]
pub struct Pooler {
    port: u16,
    accepting: tokio::task::JoinHandle<()>,
}

struct Shared {
    free: Mutex<VecDeque<TcpStream>>,
    count: Semaphore,
    turn: Turn,
}

impl Pooler {
    /// In front of a database whose server asks for no password, with so many connections to it.
    ///
    /// # Errors
    /// When the server cannot be reached or asks for one.
    pub async fn start(server: &PgOptions, connections: usize, turn: Turn) -> anyhow::Result<Pooler> {
        let mut free = VecDeque::new();
        for _ in 0..connections {
            free.push_back(login(server).await.context("log in to the server")?);
        }
        let shared = Arc::new(Shared { free: Mutex::new(free), count: Semaphore::new(connections), turn });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client, Arc::clone(&shared)));
            }
        });
        Ok(Pooler { port, accepting })
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// A connection to the server, logged in and idle.
async fn login(options: &PgOptions) -> Option<TcpStream> {
    let mut server = TcpStream::connect((options.host.as_str(), options.port)).await.ok()?;
    let mut body = 196_608_i32.to_be_bytes().to_vec();
    for text in ["user", &options.user, "database", &options.database] {
        body.extend_from_slice(text.as_bytes());
        body.push(0);
    }
    body.push(0);
    server.write_u32(u32::try_from(body.len()).ok()? + 4).await.ok()?;
    server.write_all(&body).await.ok()?;
    loop {
        match message(&mut server).await?[0] {
            b'Z' => return Some(server),
            b'E' => return None,
            _ => {}
        }
    }
}

async fn serve(mut client: TcpStream, shared: Arc<Shared>) -> Option<()> {
    let length = client.read_u32().await.ok()?;
    let mut start = vec![0; usize::try_from(length).ok()?.checked_sub(4)?];
    client.read_exact(&mut start).await.ok()?;
    // Logged in, and ready.
    client.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I").await.ok()?;
    loop {
        let mut asked = message(&mut client).await?;
        let _turn = shared.count.acquire().await.ok()?;
        let mut server = {
            let mut free = shared.free.lock().await;
            match shared.turn {
                Turn::Last => free.pop_back()?,
                Turn::Longest => free.pop_front()?,
            }
        };
        // One transaction.
        loop {
            if asked[0] == b'X' {
                break;
            }
            server.write_all(&asked).await.ok()?;
            if matches!(asked[0], b'Q' | b'S') {
                let idle = loop {
                    let answer = message(&mut server).await?;
                    client.write_all(&answer).await.ok()?;
                    if answer[0] == b'Z' {
                        break answer[5] == b'I';
                    }
                };
                if idle {
                    break;
                }
            }
            asked = message(&mut client).await?;
        }
        shared.free.lock().await.push_back(server);
    }
}

/// The next message with its head; `None` at the end.
async fn message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut message = vec![0; 5];
    stream.read_exact(&mut message).await.ok()?;
    let length = usize::try_from(u32::from_be_bytes(message[1..5].try_into().ok()?)).ok()?;
    message.resize(length + 1, 0);
    stream.read_exact(&mut message[5..]).await.ok()?;
    Some(message)
}
