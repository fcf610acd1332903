//! The listener: accept, serve, drain.

use std::net::SocketAddr;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use queen_core::Broker;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::options::HttpOptions;
use crate::service::{Router, router};

/// Cadence of the tick that `/livez` looks at.
const TICK: Duration = Duration::from_secs(2);

/// Pause after an accept that failed; the usual reason is that the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why a server could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The address is in use, not ours, or not allowed.
    #[error("cannot bind {addr}")]
    Bind {
        /// The address.
        addr: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
}

/// A bound listener with the routes behind it.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    local_addr: SocketAddr,
    router: Router,
}

/// How the serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// Every request in flight was answered.
    Clean,
    /// So many connections were dropped at the time limit.
    Dropped(usize),
}

impl Server {
    /// Binds the listener. Connections queue up from here on and are served by [`Server::serve`].
    ///
    /// # Errors
    /// [`BindError::Bind`].
    pub async fn bind(options: HttpOptions, broker: Broker) -> Result<Server, BindError> {
        let addr = options.bind;
        let refused = |source| BindError::Bind { addr, source };
        let listener = TcpListener::bind(addr).await.map_err(refused)?;
        let local_addr = listener.local_addr().map_err(refused)?;
        Ok(Server { listener, local_addr, router: router(broker, options) })
    }

    /// Where it listens; with port 0 in the options, the port that was free.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Serves until `stop` is cancelled, then drains: readiness turns 503 at once; after `drain_delay` the listener
    /// closes and parked pops get their empty answer; requests in flight have `shutdown_timeout` to finish.
    ///
    /// Dropping the future drops the listener at once; connections already accepted go on without a limit.
    pub async fn serve(self, stop: CancellationToken) -> Drained {
        let Server { listener, router, .. } = self;
        let app = router.app.clone();
        let connections = Connections::new(router);

        accept_until(&listener, &app, &connections, stop.cancelled()).await;
        app.set_draining();
        let delay = Instant::now() + app.options.drain_delay;
        accept_until(&listener, &app, &connections, tokio::time::sleep_until(delay)).await;

        drop(listener);
        // In this order: what a woken pop answers has to tell its client that the connection ends.
        connections.close();
        app.broker.drain();
        connections.finish(app.options.shutdown_timeout).await
    }
}

/// Accepts connections until `end`, ticking meanwhile.
async fn accept_until(
    listener: &TcpListener,
    app: &App,
    connections: &Connections,
    end: impl Future<Output = ()>,
) {
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut end = std::pin::pin!(end);
    loop {
        tokio::select! {
            // The end comes first: a busy listener must not put it off.
            biased;
            () = &mut end => return,
            _ = tick.tick() => app.tick(),
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => connections.spawn(stream),
                Err(error) => {
                    tracing::warn!(target: "http", %error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

/// The connections being served.
struct Connections {
    router: Router,
    tasks: TaskTracker,
    /// Idle connections close, busy ones after their current request.
    closing: CancellationToken,
    /// Everything is dropped.
    dropping: CancellationToken,
}

impl Connections {
    fn new(router: Router) -> Connections {
        Connections {
            router,
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            dropping: CancellationToken::new(),
        }
    }

    fn spawn(&self, stream: TcpStream) {
        // Answers are small and written whole: waiting for more to send would only delay them.
        let _ = stream.set_nodelay(true);
        let router = self.router.clone();
        let (closing, dropping) = (self.closing.clone(), self.dropping.clone());
        self.tasks.spawn(async move {
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), router);
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                biased;
                () = closing.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    tokio::select! {
                        ended = connection.as_mut() => ended,
                        () = dropping.cancelled() => return,
                    }
                }
                ended = connection.as_mut() => ended,
            };
            if let Err(error) = ended {
                tracing::debug!(target: "http", %error, "connection ended");
            }
        });
    }

    /// Lets no connection outlive its current request.
    fn close(&self) {
        self.closing.cancel();
    }

    /// Waits for the connections to end, and drops those that do not.
    async fn finish(self, limit: Duration) -> Drained {
        self.tasks.close();
        if tokio::time::timeout(limit, self.tasks.wait()).await.is_ok() {
            return Drained::Clean;
        }
        let left = self.tasks.len();
        self.dropping.cancel();
        self.tasks.wait().await;
        Drained::Dropped(left)
    }
}
