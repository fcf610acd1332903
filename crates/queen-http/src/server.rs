//! The listener: accept, serve, drain.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use queen_core::Broker;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::handed;
use crate::options::HttpOptions;
use crate::service::{Router, router};
use crate::shutdown::{Action, Event, Phase, Shutdown};

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
    /// closes and parked pops get their empty answer; what is in flight `shutdown_timeout` after the cancellation is
    /// dropped.
    ///
    /// Dropping the future drops the listener at once; connections already accepted go on without a limit.
    pub async fn serve(self, stop: CancellationToken) -> Drained {
        let Server { listener, router, .. } = self;
        let app = router.app.clone();
        let connections = Connections::new(router);
        let mut listener = Some(listener);
        let mut end = Shutdown::new(app.options.drain_delay, app.options.shutdown_timeout);
        let began = Instant::now();
        loop {
            let event = match (end.phase(), &listener) {
                (Phase::Stopped(drained), _) => return drained,
                (Phase::Running, Some(listener)) => {
                    accept_until(listener, &app, &connections, stop.cancelled()).await;
                    Event::Asked
                }
                (Phase::Lingering, Some(listener)) => {
                    accept_until(listener, &app, &connections, at(began, end.deadline())).await;
                    Event::Deadline
                }
                _ => tokio::select! {
                    biased;
                    dropped = connections.ended() => Event::Emptied(dropped),
                    () = at(began, end.deadline()) => Event::Deadline,
                },
            };
            for action in end.on(event, began.elapsed()) {
                match action {
                    Action::TurnUnready => app.set_draining(),
                    Action::CloseListener => drop(listener.take()),
                    Action::EndConnectionsAfterRequest => connections.close(),
                    Action::EndParkedPops => app.broker.drain(),
                    Action::DropConnections => connections.drop_all(),
                }
            }
        }
    }
}

/// Waits for a time since `began`; without one for ever.
async fn at(began: Instant, time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep_until(began + time).await,
        None => std::future::pending().await,
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
    dropped: AtomicUsize,
}

impl Connections {
    fn new(router: Router) -> Connections {
        Connections {
            router,
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            dropping: CancellationToken::new(),
            dropped: AtomicUsize::new(0),
        }
    }

    fn spawn(&self, stream: TcpStream) {
        // Answers are small and written whole: waiting for more to send would only delay them.
        let _ = stream.set_nodelay(true);
        let router = self.router.clone();
        let (closing, dropping) = (self.closing.clone(), self.dropping.clone());
        self.tasks.spawn(async move {
            let (service, socket) = handed::connection(router, stream);
            let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
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
        self.tasks.close();
    }

    /// Drops the connections that there are.
    fn drop_all(&self) {
        self.dropped.store(self.tasks.len(), Ordering::Relaxed);
        self.dropping.cancel();
    }

    /// Waits for the last connection to end, and tells how many were dropped.
    async fn ended(&self) -> usize {
        self.tasks.wait().await;
        self.dropped.load(Ordering::Relaxed)
    }
}
