use crate::conn::Conn;
use crate::error::PgError;
use crate::pipeline::{Frame, Step};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

/// An explicit transaction on a [`Conn`].
///
/// An error ends it: by the time the error is returned the transaction is rolled back (with [`PgError::Timeout`] and
/// [`PgError::Closed`] the connection is gone instead). Dropped while open, it takes its connection out of the pool
/// and closes it, which rolls back on the server; [`Tx::rollback`] keeps the connection.
pub struct Tx<'c> {
    conn: &'c mut Conn,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was sent.
    Unsent,
    Open,
    Ended,
}

impl<'c> Tx<'c> {
    pub(crate) fn new(conn: &'c mut Conn) -> Tx<'c> {
        Tx { conn, state: State::Unsent }
    }

    /// Runs one statement inside the transaction. The first call sends `BEGIN` along.
    ///
    /// # Errors
    /// As [`Tx::run`].
    pub async fn query(
        &mut self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, PgError> {
        let answers = self.run(&[Step { sql, params }]).await?;
        Ok(answers.into_iter().next().unwrap_or_default())
    }

    /// Runs the steps inside the transaction, in one round trip.
    ///
    /// # Errors
    /// The first error; the transaction is over and nothing of it is in effect. An outdated prepared statement is
    /// retried only in the first call; later it is such an error, and transient.
    pub async fn run(&mut self, steps: &[Step<'_>]) -> Result<Vec<Vec<Row>>, PgError> {
        if steps.is_empty() && self.state != State::Ended {
            return Ok(Vec::new());
        }
        let frame = match self.state {
            State::Unsent => Frame::Opening,
            State::Open => Frame::Inside,
            State::Ended => return Err(ended()),
        };
        self.state = State::Open;
        let result = self.conn.pipeline(frame, steps).await;
        if result.is_err() {
            self.state = State::Ended;
        }
        result
    }

    /// Runs the steps and commits, in one round trip.
    ///
    /// # Errors
    /// The first error; then nothing of the transaction is in effect. Only with [`PgError::Timeout`] and
    /// [`PgError::Closed`] it is unknown whether it was committed.
    pub async fn commit_with(mut self, steps: &[Step<'_>]) -> Result<Vec<Vec<Row>>, PgError> {
        let frame = match self.state {
            State::Unsent => Frame::Whole,
            State::Open => Frame::Closing,
            State::Ended => return Err(ended()),
        };
        self.state = State::Open;
        let result = self.conn.pipeline(frame, steps).await;
        self.state = State::Ended;
        result
    }

    /// Commits. A transaction that sent nothing has nothing to commit.
    ///
    /// # Errors
    /// As [`Tx::commit_with`].
    pub async fn commit(self) -> Result<(), PgError> {
        self.commit_with(&[]).await.map(|_| ())
    }

    /// Rolls back; the connection can be used further.
    ///
    /// # Errors
    /// [`PgError::Timeout`] or [`PgError::Closed`]; the connection is gone then, and the transaction with it.
    pub async fn rollback(mut self) -> Result<(), PgError> {
        if self.state != State::Open {
            return Ok(());
        }
        let result = self.conn.batch("ROLLBACK").await;
        if result.is_ok() {
            self.state = State::Ended;
        }
        result
    }
}

impl Drop for Tx<'_> {
    fn drop(&mut self) {
        if self.state == State::Open {
            self.conn.abandon();
        }
    }
}

fn ended() -> PgError {
    PgError::Value("the transaction has ended already".to_owned())
}
