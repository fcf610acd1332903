use crate::deadline::Call;
use crate::error::PgError;
use crate::line::Line;
use crate::pipeline::{self, Frame, Step};
use crate::seats::Seat;
use crate::tx::Tx;
use deadpool_postgres::{ClientWrapper, Object};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, SimpleQueryMessage};

/// How long a cancel request may take before it is given up.
const CANCEL_PATIENCE: Duration = Duration::from_secs(5);

/// A connection of the pool, or a session of its own.
///
/// # Deadlines and cancel safety
/// Every call is bounded by the deadline. A call that passes it fails with [`PgError::Timeout`], and so does one that has
/// waited for a while when the database does not let anybody connect any more; the same happens, without anybody seeing the error, when the future of a call is dropped: a cancel request is sent on a fresh
/// connection, this connection leaves the pool and is closed, the outcome is unknown, and further calls on this `Conn`
/// fail with [`PgError::Closed`].
pub struct Conn {
    session: Option<Session>,
    line: Arc<Line>,
    deadline: Option<Duration>,
}

pub(crate) enum Session {
    /// The seat is given back after the connection.
    Pooled(Object, #[expect(dead_code, reason = "it is given back when dropped")] Seat),
    Own(ClientWrapper),
}

impl Conn {
    pub(crate) fn new(session: Session, line: &Arc<Line>, deadline: Duration) -> Conn {
        Conn { session: Some(session), line: Arc::clone(line), deadline: Some(deadline) }
    }

    /// Runs one statement in a transaction of its own and returns its rows.
    ///
    /// A statement whose prepared form the server no longer accepts (somebody changed a table) is prepared anew and
    /// sent once more; the server refuses such a one before it executes anything.
    ///
    /// # Errors
    /// See [`PgError`]; [`PgError::Value`] when a parameter does not fit.
    pub async fn query(
        &mut self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, PgError> {
        let call = Call::begin(self)?;
        let result = call
            .bounded(|client| {
                fresh(client, move || async move {
                    let statement = client.prepare_cached(sql).await?;
                    Ok(client.query(&statement, params).await?)
                })
            })
            .await;
        call.finish(result)
    }

    /// Like [`Conn::query`], but returns how many rows the statement touched.
    ///
    /// # Errors
    /// As [`Conn::query`].
    pub async fn execute(
        &mut self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, PgError> {
        let call = Call::begin(self)?;
        let result = call
            .bounded(|client| {
                fresh(client, move || async move {
                    let statement = client.prepare_cached(sql).await?;
                    Ok(client.execute(&statement, params).await?)
                })
            })
            .await;
        call.finish(result)
    }

    /// Sends text in the simple protocol and throws the rows away: DDL, `SET`. Several statements in one text are one
    /// transaction, unless the text says otherwise.
    ///
    /// # Errors
    /// As [`Conn::query`].
    pub async fn batch(&mut self, sql: &str) -> Result<(), PgError> {
        let call = Call::begin(self)?;
        let result = call.bounded(|client| async move { Ok(client.batch_execute(sql).await?) }).await;
        call.finish(result)
    }

    /// Sends text in the simple protocol and returns what comes back, values as text.
    ///
    /// # Errors
    /// As [`Conn::query`].
    pub async fn simple_query(&mut self, sql: &str) -> Result<Vec<SimpleQueryMessage>, PgError> {
        let call = Call::begin(self)?;
        let result = call.bounded(|client| async move { Ok(client.simple_query(sql).await?) }).await;
        call.finish(result)
    }

    /// Runs the steps in one transaction and one round trip: `BEGIN`, all steps and `COMMIT` are written before the
    /// first answer is awaited. Returns the rows of each step. No steps: nothing is sent.
    ///
    /// Statements that this connection has not seen are prepared first, in a trip before.
    ///
    /// # Errors
    /// The first error; then nothing of the transaction is in effect. Only with [`PgError::Timeout`] and
    /// [`PgError::Closed`] it is unknown whether the transaction was committed.
    pub async fn transact(&mut self, steps: &[Step<'_>]) -> Result<Vec<Vec<Row>>, PgError> {
        self.pipeline(Frame::Whole, steps).await
    }

    /// Begins an explicit transaction. Nothing is sent: `BEGIN` goes out together with the first statement.
    pub fn begin(&mut self) -> Tx<'_> {
        Tx::new(self)
    }

    /// Changes the deadline of this connection's calls; `None` lets them take as long as they like. The server's own
    /// `statement_timeout` stays what it is.
    pub fn set_deadline(&mut self, deadline: Option<Duration>) {
        self.deadline = deadline;
    }

    /// Whether the connection is known to be lost or was given up after a call that did not end well.
    pub fn is_closed(&self) -> bool {
        self.client().is_none_or(|client| client.is_closed())
    }

    pub(crate) async fn pipeline(
        &mut self,
        frame: Frame,
        steps: &[Step<'_>],
    ) -> Result<Vec<Vec<Row>>, PgError> {
        if steps.is_empty() && frame == Frame::Whole {
            return Ok(Vec::new());
        }
        let call = Call::begin(self)?;
        let result = call
            .bounded(|client| async move {
                if matches!(frame, Frame::Whole | Frame::Opening) {
                    fresh(client, || pipeline::run(client, frame, steps)).await
                } else {
                    forget_stale(client, pipeline::run(client, frame, steps).await)
                }
            })
            .await;
        call.finish(result)
    }

    pub(crate) fn client(&self) -> Option<&ClientWrapper> {
        self.session.as_ref().map(|session| match session {
            Session::Pooled(object, _) => &**object,
            Session::Own(client) => client,
        })
    }

    pub(crate) fn line(&self) -> &Line {
        &self.line
    }

    /// The deadline of this connection's calls.
    pub fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    /// Takes the connection out of the pool and closes it.
    pub(crate) fn abandon(&mut self) {
        drop(self.take_client());
    }

    /// Asks the server to stop what this session runs, then closes it. Returns at once.
    pub(crate) fn cancel_and_abandon(&mut self) {
        let Some(client) = self.take_client() else { return };
        // Without a runtime (it is being torn down) closing the socket is all that can be done.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let token = client.cancel_token();
        let connector = self.line.opener.connector.clone();
        runtime.spawn(async move {
            // The session stays open until the request is out, so that its process id still means this session.
            match tokio::time::timeout(CANCEL_PATIENCE, connector.cancel(token)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, "cancel request failed"),
                Err(_) => tracing::debug!("cancel request got no answer"),
            }
            drop(client);
        });
    }

    pub(crate) fn note_timeout(&self) {
        if may_warn() {
            tracing::warn!(
                deadline_ms = self.deadline.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)),
                "a statement passed its deadline; it is cancelled and its connection closed"
            );
        }
    }

    fn take_client(&mut self) -> Option<ClientWrapper> {
        self.session.take().map(|session| match session {
            Session::Pooled(object, _) => Object::take(object),
            Session::Own(client) => client,
        })
    }
}

/// Runs `attempt`, and once more with newly prepared statements when the cached ones are outdated.
async fn fresh<T, A, F>(client: &ClientWrapper, attempt: A) -> Result<T, PgError>
where
    A: Fn() -> F,
    F: Future<Output = Result<T, PgError>>,
{
    match forget_stale(client, attempt().await) {
        Err(error) if error.is_stale_statement() => attempt().await,
        result => result,
    }
}

fn forget_stale<T>(client: &ClientWrapper, result: Result<T, PgError>) -> Result<T, PgError> {
    if let Err(error) = &result
        && error.is_stale_statement()
    {
        client.statement_cache.clear();
    }
    result
}

/// At most one warning in 30 s for the whole process: in an outage every call in flight passes its deadline.
fn may_warn() -> bool {
    static LAST_SECOND: AtomicU64 = AtomicU64::new(0);
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let second = START.get_or_init(Instant::now).elapsed().as_secs() + 30;
    let last = LAST_SECOND.load(Ordering::Relaxed);
    second >= last + 30
        && LAST_SECOND.compare_exchange(last, second, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}
