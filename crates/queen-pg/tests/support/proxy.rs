use parking::Gate;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// A TCP proxy that remembers what clients wrote and can hold back what the server answers.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    shared: Arc<Shared>,
    accepting: tokio::task::JoinHandle<()>,
}

struct Shared {
    written: Mutex<Vec<u8>>,
    answers: Gate,
}

impl Proxy {
    pub(crate) async fn start(host: String, port: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own_port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared { written: Mutex::new(Vec::new()), answers: Gate::open() });
        let state = Arc::clone(&shared);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect((host.as_str(), port)).await.unwrap();
                client.set_nodelay(true).unwrap();
                server.set_nodelay(true).unwrap();
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                tokio::spawn(requests(Arc::clone(&state), from_client, to_server));
                tokio::spawn(answers(Arc::clone(&state), from_server, to_client));
            }
        });
        Proxy { port: own_port, shared, accepting }
    }

    /// From here on nothing of the server reaches a client; forgets what was written before.
    pub(crate) fn hold_answers(&self) {
        self.shared.answers.close();
        self.shared.written.lock().unwrap().clear();
    }

    pub(crate) fn release_answers(&self) {
        self.shared.answers.reopen();
    }

    /// The frontend messages since [`Proxy::hold_answers`]: type byte and body.
    pub(crate) fn messages(&self) -> Vec<(char, Vec<u8>)> {
        let written = self.shared.written.lock().unwrap();
        let mut rest = written.as_slice();
        let mut messages = Vec::new();
        while rest.len() >= 5 {
            let length = u32::from_be_bytes(rest[1..5].try_into().unwrap()) as usize;
            if rest.len() < length + 1 {
                break;
            }
            messages.push((rest[0] as char, rest[5..=length].to_vec()));
            rest = &rest[length + 1..];
        }
        messages
    }

    /// The message types as one word; simple queries as their text in brackets.
    pub(crate) fn transcript(&self) -> String {
        self.messages()
            .into_iter()
            .map(|(kind, body)| match kind {
                'Q' => format!("[{}]", String::from_utf8_lossy(&body[..body.len() - 1])),
                kind => kind.to_string(),
            })
            .collect()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn requests(shared: Arc<Shared>, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        shared.written.lock().unwrap().extend_from_slice(&buffer[..length]);
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

async fn answers(shared: Arc<Shared>, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        shared.answers.passed().await;
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

mod parking {
    use tokio::sync::watch;

    /// Lets tasks through while it is open.
    pub(super) struct Gate(watch::Sender<bool>);

    impl Gate {
        pub(super) fn open() -> Gate {
            Gate(watch::channel(true).0)
        }

        pub(super) fn close(&self) {
            self.0.send_replace(false);
        }

        pub(super) fn reopen(&self) {
            self.0.send_replace(true);
        }

        pub(super) async fn passed(&self) {
            let _ = self.0.subscribe().wait_for(|open| *open).await;
        }
    }
}
