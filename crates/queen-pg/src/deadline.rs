use crate::conn::Conn;
use crate::error::PgError;
use deadpool_postgres::ClientWrapper;
use std::future::Future;
use std::time::{Duration, Instant};

/// One call in flight. Dropped before [`Call::finish`] has seen an answer, it cancels what the server runs and takes
/// the connection away from its `Conn`: that is how both a deadline and a dropped future end.
pub(crate) struct Call<'c> {
    conn: &'c mut Conn,
    answered: bool,
}

impl<'c> Call<'c> {
    pub(crate) fn begin(conn: &'c mut Conn) -> Result<Call<'c>, PgError> {
        if conn.client().is_none() {
            return Err(PgError::Closed("an earlier call on this connection did not end well".to_owned()));
        }
        Ok(Call { conn, answered: false })
    }

    /// Runs `work` on the session's client within the connection's deadline.
    pub(crate) async fn bounded<'s, T, W, F>(&'s self, work: W) -> Result<T, PgError>
    where
        W: FnOnce(&'s ClientWrapper) -> F,
        F: Future<Output = Result<T, PgError>> + 's,
    {
        let Some(client) = self.conn.client() else {
            return Err(PgError::Closed("the connection was given up".to_owned()));
        };
        let mut work = std::pin::pin!(work(client));
        let (line, deadline) = (self.conn.line(), self.conn.deadline());
        let began = Instant::now();
        let left = || deadline.map_or(Duration::MAX, |after| after.saturating_sub(began.elapsed()));
        loop {
            if let Ok(result) = tokio::time::timeout(left().min(line.patience()), &mut work).await {
                return result;
            }
            // The connection that does not answer cannot tell a long statement from a dead network; a new one can.
            let lost = tokio::select! {
                biased;
                result = &mut work => return result,
                () = tokio::time::sleep(left()) => deadline,
                reachable = line.is_reachable() => if reachable { None } else { Some(began.elapsed()) },
            };
            if let Some(after) = lost {
                return Err(PgError::Timeout { after });
            }
        }
    }

    /// Keeps the connection when the call is over for the server too, and gives it up otherwise.
    pub(crate) fn finish<T>(mut self, result: Result<T, PgError>) -> Result<T, PgError> {
        match &result {
            Err(PgError::Timeout { .. }) => self.conn.note_timeout(),
            Err(PgError::Closed(_)) => {
                self.answered = true;
                self.conn.abandon();
            }
            // Said before the socket closes: without this the pool may hand it out once more.
            Err(error) if error.ends_session() => {
                self.answered = true;
                self.conn.abandon();
            }
            _ => self.answered = true,
        }
        result
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.conn.cancel_and_abandon();
        }
    }
}
