use crate::error::PgError;
use deadpool_postgres::ClientWrapper;
use futures_util::future::try_join_all;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement};

/// One statement of a pipeline with its parameters.
#[derive(Clone, Copy)]
pub struct Step<'a> {
    /// The statement. It is prepared once per connection.
    pub sql: &'static str,
    /// Its parameters, `$1` first.
    pub params: &'a [&'a (dyn ToSql + Sync)],
}

/// Shorthand for a [`Step`].
pub fn step<'a>(sql: &'static str, params: &'a [&'a (dyn ToSql + Sync)]) -> Step<'a> {
    Step { sql, params }
}

/// What surrounds the steps of one trip to the server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    /// `BEGIN`, steps, `COMMIT`.
    Whole,
    /// `BEGIN`, steps; the transaction stays open.
    Opening,
    /// Steps inside an open transaction.
    Inside,
    /// Steps inside an open transaction, `COMMIT`.
    Closing,
}

impl Frame {
    fn begins(self) -> bool {
        matches!(self, Frame::Whole | Frame::Opening)
    }

    fn commits(self) -> bool {
        matches!(self, Frame::Whole | Frame::Closing)
    }
}

/// Sends everything without waiting in between, then collects the answers.
///
/// After an error the session is outside the transaction, with two exceptions: the error is [`PgError::Closed`] or one
/// that [ends the session](PgError::ends_session), and the caller must give the connection up.
pub(crate) async fn run(
    client: &ClientWrapper,
    frame: Frame,
    steps: &[Step<'_>],
) -> Result<Vec<Vec<Row>>, PgError> {
    let statements = match prepare(client, steps).await {
        Ok(statements) => statements,
        // A failed Parse aborts the transaction that it happens in.
        Err(error) if !frame.begins() => return Err(leave(client, error.into()).await),
        Err(error) => return Err(error.into()),
    };
    let mut slots = Vec::with_capacity(steps.len() + 2);
    if frame.begins() {
        slots.push(Slot::command(client, "BEGIN"));
    }
    for (step, statement) in steps.iter().zip(&statements) {
        slots.push(Slot::rows(client, statement, step.params));
    }
    // A step that fails before it is sent (a parameter that cannot be encoded) would leave a hole in the pipeline,
    // which the server cannot see: such a transaction must never get its COMMIT.
    let all_sent = poll_fn(|cx| Poll::Ready(send_in_order(&mut slots, cx))).await;
    if all_sent && frame.commits() {
        slots.push(Slot::command(client, "COMMIT"));
    }
    poll_fn(|cx| poll_all(&mut slots, cx)).await;
    let outcome = collect(slots, frame, steps.len());
    match outcome {
        Err(error) if !(all_sent && frame.commits()) => Err(leave(client, error).await),
        outcome => outcome,
    }
}

/// Prepares what this connection does not know yet, all in one trip.
async fn prepare(client: &ClientWrapper, steps: &[Step<'_>]) -> Result<Vec<Statement>, Error> {
    try_join_all(steps.iter().map(|step| client.prepare_cached(step.sql))).await
}

/// Rolls back after `error`. Only a session that is provably idle again may be used further.
async fn leave(client: &ClientWrapper, error: PgError) -> PgError {
    // The transaction went with its session; no COMMIT was sent.
    if error.ends_session() {
        return error;
    }
    match client.batch_execute("ROLLBACK").await {
        Ok(()) => error,
        Err(rollback) => PgError::Closed(format!("{error}; then ROLLBACK failed: {rollback}")),
    }
}

/// The answers of the steps, or the first error. `COMMIT` of an aborted transaction succeeds (as a rollback), so the
/// steps are looked at first.
fn collect(slots: Vec<Slot<'_>>, frame: Frame, steps: usize) -> Result<Vec<Vec<Row>>, PgError> {
    let mut answers = Vec::with_capacity(steps);
    for (position, slot) in slots.into_iter().enumerate() {
        let is_begin = frame.begins() && position == 0;
        let is_step = !is_begin && answers.len() < steps;
        match slot {
            Slot::Done(Ok(rows)) if is_step => answers.push(rows),
            Slot::Done(Ok(_)) => {}
            // The steps behind a failed BEGIN ran each for itself: nobody can say what is in effect.
            Slot::Done(Err(error)) if is_begin => {
                return Err(PgError::Closed(format!("BEGIN failed: {}", PgError::from(error))));
            }
            Slot::Done(Err(error)) => return Err(error.into()),
            Slot::Waiting(_) => return Err(PgError::Closed("an answer is missing".to_owned())),
        }
    }
    Ok(answers)
}

type Answer<'a> = Pin<Box<dyn Future<Output = Result<Vec<Row>, Error>> + Send + 'a>>;

/// One message to the server and what came back. tokio-postgres sends a message when its future is first polled.
enum Slot<'a> {
    Waiting(Answer<'a>),
    Done(Result<Vec<Row>, Error>),
}

impl<'a> Slot<'a> {
    fn command(client: &'a ClientWrapper, sql: &'static str) -> Slot<'a> {
        Slot::Waiting(Box::pin(async move { client.batch_execute(sql).await.map(|()| Vec::new()) }))
    }

    fn rows(
        client: &'a ClientWrapper,
        statement: &'a Statement,
        params: &'a [&'a (dyn ToSql + Sync)],
    ) -> Slot<'a> {
        Slot::Waiting(Box::pin(client.query(statement, params)))
    }

    /// `true` when the answer is there.
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        if let Slot::Waiting(answer) = self {
            match answer.as_mut().poll(cx) {
                Poll::Ready(result) => *self = Slot::Done(result),
                Poll::Pending => return false,
            }
        }
        true
    }
}

/// Polls each slot once, in order, up to the first that fails on the spot. `false` when there is such a one.
fn send_in_order(slots: &mut Vec<Slot<'_>>, cx: &mut Context<'_>) -> bool {
    for position in 0..slots.len() {
        if let Some(slot) = slots.get_mut(position) {
            slot.poll(cx);
            if matches!(slot, Slot::Done(Err(_))) {
                slots.truncate(position + 1);
                return false;
            }
        }
    }
    true
}

/// A pipeline has a handful of slots, so every wake simply looks at all of them.
fn poll_all(slots: &mut [Slot<'_>], cx: &mut Context<'_>) -> Poll<()> {
    let mut all = true;
    for slot in slots {
        all &= slot.poll(cx);
    }
    if all { Poll::Ready(()) } else { Poll::Pending }
}
