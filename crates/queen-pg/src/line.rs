//! The line to the database: whether it answers at all.
//!
//! A network that swallows every packet answers nothing and refuses nothing, so each caller would learn of it by its own
//! time-out. Here what one learns holds for all: while the line is silent a single caller at a time tries it again, and
//! the others are told at once.

use crate::error::PgError;
use crate::options::PgOptions;
use crate::session::Opener;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_postgres::Config;

/// A silent line is tried again after this.
const PAUSE: Duration = Duration::from_secs(1);
/// No call is suspected, and no probe given up, before this: a busy machine is slow, and not away.
const PATIENCE_MIN: Duration = Duration::from_secs(2);
/// How long the verdict of a probe that was answered holds for others.
const TRUSTED_FOR: Duration = Duration::from_secs(1);

/// What all connections of a pool know of the way to their server.
pub(crate) struct Line {
    pub(crate) opener: Opener,
    config: Config,
    patience: Duration,
    began: Instant,
    state: Mutex<State>,
    /// Held by the one who probes; the others wait for what comes of it.
    probing: tokio::sync::Mutex<()>,
}

/// What is known of a line, with the time as an argument.
#[derive(Debug, Default, PartialEq, Eq)]
struct State {
    /// The line is silent, and not to be tried before this time.
    silent_until: Option<Duration>,
    /// Somebody tries the silent line.
    trying: bool,
    /// When the last sign of life came.
    answered_at: Option<Duration>,
}

/// Who may use the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Admitted {
    /// Anybody.
    Freely,
    /// This caller alone, to find out.
    ToTry,
    /// Nobody.
    No,
}

impl State {
    fn admit(&mut self, now: Duration) -> Admitted {
        match self.silent_until {
            None => Admitted::Freely,
            Some(until) if now < until || self.trying => Admitted::No,
            Some(_) => {
                self.trying = true;
                Admitted::ToTry
            }
        }
    }

    /// True when the line was silent.
    fn answered(&mut self, now: Duration) -> bool {
        self.answered_at = Some(now);
        self.silent_until.take().is_some()
    }

    /// True when the line was not silent.
    fn silent(&mut self, now: Duration) -> bool {
        self.silent_until.replace(now + PAUSE).is_none()
    }

    fn answered_lately(&self, now: Duration) -> bool {
        self.silent_until.is_none() && self.answered_at.is_some_and(|at| now.saturating_sub(at) < TRUSTED_FOR)
    }
}

/// Leave to use the line, and the duty to tell what came of it.
pub(crate) struct Attempt<'l> {
    line: &'l Line,
    admitted: Admitted,
}

impl Line {
    pub(crate) fn new(options: &PgOptions, opener: Opener, config: &Config) -> Line {
        Line {
            opener,
            config: config.clone(),
            patience: options.connect_timeout.max(PATIENCE_MIN),
            began: Instant::now(),
            state: Mutex::default(),
            probing: tokio::sync::Mutex::default(),
        }
    }

    /// How long a call waits for its answer before the line is suspected, and a probe for its own.
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// Leave to use the line.
    pub(crate) fn admit(&self) -> Result<Attempt<'_>, PgError> {
        match self.with(State::admit) {
            Admitted::No => {
                Err(PgError::unreachable("the database does not answer, and is tried again in a second"))
            }
            admitted => Ok(Attempt { line: self, admitted }),
        }
    }

    /// The server was heard.
    pub(crate) fn answered(&self) {
        if self.with(State::answered) {
            tracing::info!("the database answers again");
        }
    }

    fn silent(&self) {
        if self.with(State::silent) {
            tracing::warn!("the database does not answer; calls fail at once until it does");
        }
    }

    /// Whether the server lets somebody connect. Takes at most twice [`Line::patience`].
    pub(crate) async fn is_reachable(&self) -> bool {
        let asked = self.began.elapsed();
        let _probing = self.probing.lock().await;
        {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let now = self.began.elapsed();
            if state.answered_lately(now) || state.answered_at.is_some_and(|at| at >= asked) {
                return true;
            }
            // Whoever held the probe before has just found out.
            if state.silent_until.is_some_and(|until| until >= asked + PAUSE) {
                return false;
            }
        }
        // A refusal is an answer too: then it is the server that is in trouble, and resets what it does not serve.
        // Boxed: connecting takes kilobytes, and every statement of every request would carry them.
        let open = Box::pin(self.opener.open(&self.config));
        let reachable = tokio::time::timeout(self.patience, open).await.is_ok();
        if reachable {
            self.answered()
        } else {
            self.silent()
        }
        reachable
    }

    fn with<T>(&self, change: impl FnOnce(&mut State, Duration) -> T) -> T {
        let now = self.began.elapsed();
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner), now)
    }
}

impl Attempt<'_> {
    /// Whether the line was silent, and this caller finds out whether it still is.
    pub(crate) fn is_the_only_one(&self) -> bool {
        self.admitted == Admitted::ToTry
    }

    /// The server was heard, or a connection was at hand.
    pub(crate) fn got_an_answer(self) {
        if self.is_the_only_one() {
            self.line.answered();
        }
    }

    /// Nothing came.
    pub(crate) fn got_silence(self) {
        self.line.silent();
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if self.is_the_only_one() {
            self.line.with(|state, _| state.trying = false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_silent_line_is_tried_by_one_caller_at_a_time() {
        let mut state = State::default();
        assert_eq!(state.admit(ms(0)), Admitted::Freely);
        assert!(state.silent(ms(100)), "that is news");
        assert!(!state.silent(ms(200)), "that is not");
        assert_eq!(state.admit(ms(1199)), Admitted::No);
        assert_eq!(state.admit(ms(1200)), Admitted::ToTry);
        assert_eq!(state.admit(ms(1201)), Admitted::No, "somebody tries already");
        state.trying = false;
        assert_eq!(state.admit(ms(1202)), Admitted::ToTry, "who gave up left it to the next");
        state.silent(ms(6202));
        state.trying = false;
        assert_eq!(state.admit(ms(7201)), Admitted::No);
        assert_eq!(state.admit(ms(7202)), Admitted::ToTry);
        assert!(state.answered(ms(7300)));
        state.trying = false;
        assert_eq!(state.admit(ms(7300)), Admitted::Freely);
    }

    #[test]
    fn a_sign_of_life_holds_for_a_second() {
        let mut state = State::default();
        assert!(!state.answered_lately(ms(0)));
        assert!(!state.answered(ms(0)), "it was never silent");
        assert!(state.answered_lately(ms(999)));
        assert!(!state.answered_lately(ms(1000)));
        state.answered(ms(2000));
        state.silent(ms(2001));
        assert!(!state.answered_lately(ms(2002)));
    }
}
