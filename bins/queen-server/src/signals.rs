//! SIGTERM and SIGINT: the first drains, the second ends the process. SIGHUP is ignored.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// A signal that the process takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caught {
    Term,
    Int,
    Hup,
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    Nothing,
    Drain,
    ExitNow(u8),
}

impl Caught {
    fn name(self) -> &'static str {
        match self {
            Caught::Term => "SIGTERM",
            Caught::Int => "SIGINT",
            Caught::Hup => "SIGHUP",
        }
    }

    /// What it asks of a process that drains already, or does not.
    fn ask(self, draining: bool) -> Ask {
        match self {
            Caught::Hup => Ask::Nothing,
            Caught::Term | Caught::Int if !draining => Ask::Drain,
            Caught::Term => Ask::ExitNow(143),
            Caught::Int => Ask::ExitNow(130),
        }
    }
}

/// What the signals of this process ask for.
pub(crate) struct Signals {
    /// Cancelled by the first signal.
    pub(crate) stop: CancellationToken,
    term: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// Takes over the signals from here on. They are acted upon while [`Signals::forced`] is polled.
    pub(crate) fn install() -> io::Result<Signals> {
        Ok(Signals {
            stop: CancellationToken::new(),
            term: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Cancels `stop` at the first signal, waits for the second and gives the exit code that belongs to it.
    pub(crate) async fn forced(&mut self) -> u8 {
        // A drain has one reason or another; only a signal that came before makes the next one the second.
        let mut draining = false;
        loop {
            let caught = self.next().await;
            let signal = caught.name();
            match caught.ask(draining) {
                Ask::Nothing => tracing::info!(target: "shutdown", "{signal} is ignored"),
                Ask::Drain => {
                    tracing::info!(target: "shutdown", signal, "signal received, draining in-flight requests");
                    draining = true;
                    self.stop.cancel();
                }
                Ask::ExitNow(code) => {
                    tracing::warn!(target: "shutdown", signal, "second signal, ending at once");
                    return code;
                }
            }
        }
    }

    async fn next(&mut self) -> Caught {
        tokio::select! {
            _ = self.term.recv() => Caught::Term,
            _ = self.interrupt.recv() => Caught::Int,
            _ = self.hangup.recv() => Caught::Hup,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_signal_asks_for() {
        let table = [
            (Caught::Hup, false, Ask::Nothing),
            (Caught::Hup, true, Ask::Nothing),
            (Caught::Term, false, Ask::Drain),
            (Caught::Int, false, Ask::Drain),
            (Caught::Term, true, Ask::ExitNow(143)),
            (Caught::Int, true, Ask::ExitNow(130)),
        ];
        for (caught, draining, ask) in table {
            assert_eq!(caught.ask(draining), ask, "{caught:?} while draining: {draining}");
        }
    }
}
