//! SIGTERM and SIGINT: the first drains, the second ends the process. SIGHUP is ignored.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// What the signals of this process ask for.
pub(crate) struct Signals {
    /// Cancelled by the first signal.
    pub(crate) stop: CancellationToken,
    forced: oneshot::Receiver<u8>,
}

impl Signals {
    /// Takes over the signals from here on.
    pub(crate) fn install() -> io::Result<Signals> {
        let mut listener = Listener {
            term: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        };
        let stop = CancellationToken::new();
        let (force, forced) = oneshot::channel();
        let first = stop.clone();
        tokio::spawn(async move {
            let name = listener.next().await.0;
            tracing::info!(target: "shutdown", signal = name, "signal received, draining in-flight requests");
            first.cancel();
            let (name, code) = listener.next().await;
            tracing::warn!(target: "shutdown", signal = name, "second signal, ending at once");
            let _ = force.send(code);
        });
        Ok(Signals { stop, forced })
    }

    /// Waits for the second signal and gives the exit code that belongs to it.
    pub(crate) async fn forced(&mut self) -> u8 {
        match (&mut self.forced).await {
            Ok(code) => code,
            Err(_) => std::future::pending().await,
        }
    }
}

struct Listener {
    term: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Listener {
    /// The next signal that asks for an end: its name and exit code.
    async fn next(&mut self) -> (&'static str, u8) {
        loop {
            tokio::select! {
                _ = self.term.recv() => return ("SIGTERM", 143),
                _ = self.interrupt.recv() => return ("SIGINT", 130),
                _ = self.hangup.recv() => tracing::info!(target: "shutdown", "SIGHUP is ignored"),
            }
        }
    }
}
