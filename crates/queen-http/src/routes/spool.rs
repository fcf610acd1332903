use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::StatusCode;
use queen_core::{Error, QuarantineError, Quarantined};
use queen_types::Timestamp;
use queen_wire::{FileLine, QuarantineEvent, QuarantineLine, Query};

use super::Call;
use super::maintenance::buffer_line;
use crate::app::App;
use crate::error::ApiError;
use crate::reply::{self, Answer};

/// Most messages of one page.
const PAGE_MAX: i64 = 1000;
/// Longest wait for a drain.
const DRAIN_MAX: Duration = Duration::from_secs(300);

/// `GET /api/v1/system/spool`
pub(super) async fn show(app: &App) -> Answer {
    let line = buffer_line(app).await;
    let status = app.broker.buffered();
    let files = status.files.iter().map(|file| FileLine {
        name: &file.name,
        state: file.state.as_str(),
        events: file.events,
        bytes: file.bytes,
    });
    let age = status.oldest.map(age_seconds);
    reply::ok(queen_wire::spool(&line, age, status.quarantined_files, files))
}

fn age_seconds(since: Timestamp) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    let since = u128::try_from(since.0).unwrap_or(0);
    u64::try_from(now.saturating_sub(since) / 1_000_000).unwrap_or(u64::MAX)
}

/// `GET /api/v1/system/spool/quarantine`
pub(super) async fn quarantine(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let query = Query::parse(call.query)?;
    let limit = query.lenient_page("limit", 100).clamp(0, PAGE_MAX).unsigned_abs();
    let offset = query.lenient_page("offset", 0).max(0).unsigned_abs();
    let payload = query.lenient_bool("payload", false);
    let file = query.lenient("file").filter(|file| !file.is_empty()).map(str::to_owned);
    let page = app.broker.quarantined(file, offset, limit).await.map_err(refused)?;
    let lines = page.events.iter().map(|quarantined| line(quarantined, payload));
    Ok(reply::ok(queen_wire::quarantine(lines, page.total)))
}

fn line(quarantined: &Quarantined, payload: bool) -> QuarantineLine<'_> {
    QuarantineLine {
        file: &quarantined.file,
        index: quarantined.index,
        event: quarantined.event.as_ref().map(|event| QuarantineEvent {
            tenant: event.tenant,
            queue: event.queue.as_str(),
            partition: event.partition.as_str(),
            transaction_id: event.transaction_id.as_str(),
            message_id: event.message_id,
            accepted_at: event.accepted_at,
            payload: std::str::from_utf8(&event.payload).ok().filter(|_| payload),
        }),
        sqlstate: quarantined.why.sqlstate.as_deref(),
        error: &quarantined.why.error,
        failed_at: &quarantined.why.failed_at,
    }
}

/// `POST /api/v1/system/spool/quarantine/:file/requeue`
pub(super) async fn requeue(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let indexes = queen_wire::requeue_indexes(&call.body)?;
    let requeued = app.broker.requeue(call.param(0), indexes.as_deref()).await.map_err(refused)?;
    Ok(reply::ok(queen_wire::counted("requeued", requeued)))
}

/// `DELETE /api/v1/system/spool/quarantine/:file`
pub(super) async fn delete(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let deleted = app.broker.delete_quarantined(call.param(0)).await.map_err(refused)?;
    Ok(reply::ok(queen_wire::counted("deleted", deleted)))
}

/// `POST /api/v1/system/spool/drain`
pub(super) async fn drain(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let wait = Duration::from_millis(queen_wire::drain_wait(&call.body)?).min(DRAIN_MAX);
    match app.broker.replay_now(wait).await {
        Ok(drained) => {
            Ok(reply::ok(queen_wire::drained(drained.drained, drained.pending, drained.quarantined)))
        }
        Err(Error::Refused(text)) => Err(ApiError::new(StatusCode::CONFLICT, &text)),
        Err(error) => Err(ApiError::core("drain failed", error)),
    }
}

fn refused(error: QuarantineError) -> ApiError {
    let status = match error {
        QuarantineError::NoSuchFile(_) => StatusCode::NOT_FOUND,
        QuarantineError::NoSuchEvent { .. } | QuarantineError::NoEvent { .. } => StatusCode::BAD_REQUEST,
        QuarantineError::Refused(_) => StatusCode::SERVICE_UNAVAILABLE,
        QuarantineError::Io(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    ApiError::new(status, &error.to_string())
}
