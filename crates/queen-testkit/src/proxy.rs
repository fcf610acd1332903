//! A TCP proxy that can be cut: the network between a broker and its database.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    /// Bytes flow.
    Open,
    /// Connections are reset, those that exist and those that come.
    Cut,
    /// Connections stay and are accepted, and nothing arrives.
    Blackhole,
}

/// A proxy on loopback in front of a TCP server, with a thread of its own, so that it works under tests that block
/// or pause their clock. Dropped, it closes everything.
#[derive(Debug)]
pub struct FaultProxy {
    port: u16,
    link: watch::Sender<Link>,
    accepted: Arc<AtomicUsize>,
}

impl FaultProxy {
    /// Starts on a free port, forwarding to `host:port`. The target need not listen yet.
    ///
    /// # Errors
    /// When no port or thread is to be had.
    pub async fn start(target_host: &str, target_port: u16) -> anyhow::Result<FaultProxy> {
        let (link, watched) = watch::channel(Link::Open);
        let (bound, port) = oneshot::channel();
        let accepted = Arc::new(AtomicUsize::new(0));
        let service =
            Service { target: (target_host.to_owned(), target_port), accepted: Arc::clone(&accepted) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new()
            .name("fault-proxy".to_owned())
            .spawn(move || runtime.block_on(service.run(watched, bound)))?;
        let port = port.await.context("the proxy ended at once")?.context("bind the proxy")?;
        Ok(FaultProxy { port, link, accepted })
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How many connections were accepted so far, in whatever state the link was.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Resets all connections, and every new one, until [`FaultProxy::restore`].
    pub fn cut(&self) {
        self.link.send_replace(Link::Cut);
    }

    /// Keeps all connections open, accepts new ones, and lets no byte through until [`FaultProxy::restore`]; what
    /// was sent meanwhile arrives then.
    pub fn blackhole(&self) {
        self.link.send_replace(Link::Blackhole);
    }

    /// Lets bytes flow again. Connections that were cut stay cut.
    pub fn restore(&self) {
        self.link.send_replace(Link::Open);
    }
}

struct Service {
    target: (String, u16),
    accepted: Arc<AtomicUsize>,
}

impl Service {
    /// Accepts until the handle is dropped, which ends the runtime and with it all connections.
    async fn run(self, mut link: watch::Receiver<Link>, bound: oneshot::Sender<std::io::Result<u16>>) {
        let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await {
            Ok(listener) => listener,
            Err(error) => {
                let _ = bound.send(Err(error));
                return;
            }
        };
        let _ = bound.send(listener.local_addr().map(|address| address.port()));
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    let Ok((client, _)) = accepted else { continue };
                    self.accepted.fetch_add(1, Ordering::Relaxed);
                    tokio::spawn(connection(client, self.target.clone(), link.clone()));
                }
                changed = link.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
            }
        }
    }
}

async fn connection(client: TcpStream, target: (String, u16), mut link: watch::Receiver<Link>) {
    // Whatever ends a connection here ends it with a reset, as a broken network does.
    let _ = client.set_zero_linger();
    let _ = client.set_nodelay(true);
    if !flows(&mut link).await {
        return;
    }
    let Ok(server) = TcpStream::connect((target.0.as_str(), target.1)).await else { return };
    let _ = server.set_nodelay(true);
    let (client_read, client_write) = client.into_split();
    let (server_read, server_write) = server.into_split();
    let up = pump(client_read, server_write, link.clone());
    let down = pump(server_read, client_write, link);
    tokio::select! {
        () = up => {}
        () = down => {}
    }
}

/// Waits while the link swallows everything; false when it is cut.
async fn flows(link: &mut watch::Receiver<Link>) -> bool {
    match link.wait_for(|link| *link != Link::Blackhole).await {
        Ok(link) => *link == Link::Open,
        Err(_) => false,
    }
}

/// Carries bytes one way until an end closes or the link is cut.
async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut link: watch::Receiver<Link>) {
    let mut buffer = vec![0; 64 * 1024];
    while flows(&mut link).await {
        let read = tokio::select! {
            read = from.read(&mut buffer) => read,
            _ = link.changed() => continue,
        };
        let Ok(length @ 1..) = read else { return };
        if !flows(&mut link).await {
            return;
        }
        tokio::select! {
            written = to.write_all(&buffer[..length]) => if written.is_err() { return },
            _ = link.wait_for(|link| *link == Link::Cut) => return,
        }
    }
}
