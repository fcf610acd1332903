use std::time::Duration;

use hyper::StatusCode;
use queen_core::Mode;
use queen_wire::{BufferLine, ModeRequest};

use super::Call;
use crate::app::App;
use crate::error::ApiError;
use crate::reply::{self, Answer};

/// How long a switch waits for the pushes that are under way, when it is asked to.
const QUIET_PATIENCE: Duration = Duration::from_secs(60);

/// The spool in numbers, with a look at the database.
pub(super) async fn buffer_line(app: &App) -> BufferLine {
    spool_line(app, app.broker.is_database_healthy().await)
}

/// The spool in numbers.
pub(super) fn spool_line(app: &App, db_healthy: bool) -> BufferLine {
    let status = app.broker.buffered();
    BufferLine {
        pending: status.pending,
        pending_files: status.pending_files,
        failed: status.refused,
        db_healthy,
        ready_files: status.ready_files,
        ready_bytes: status.ready_bytes,
        bytes: status.bytes,
        quarantined: status.quarantined,
        writable: status.writable,
    }
}

/// `GET /api/v1/status/buffers`
pub(super) async fn buffers(app: &App) -> Answer {
    reply::ok(queen_wire::buffers(&buffer_line(app).await))
}

/// `GET /api/v1/system/maintenance`
pub(super) async fn get(app: &App) -> Answer {
    let modes = app.broker.fresh_maintenance().await;
    reply::ok(queen_wire::maintenance(modes.push, modes.pop, modes.transactions, &buffer_line(app).await))
}

/// `POST /api/v1/system/maintenance`
pub(super) async fn set(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let request = ModeRequest::parse(&call.body)?;
    let mut mirrored = app.broker.set_maintenance(Mode::Push, request.enabled).await;
    if request.transactions != app.broker.maintenance().transactions {
        mirrored &= app.broker.set_maintenance(Mode::Transactions, request.transactions).await;
    }
    let landed = if request.wait { Some(app.broker.pushes_landed(QUIET_PATIENCE).await) } else { None };
    let line = buffer_line(app).await;
    Ok(reply::ok(queen_wire::maintenance_set(request.enabled, &line, mirrored, landed)))
}

/// `GET /api/v1/system/maintenance/pop`
pub(super) async fn get_pop(app: &App) -> Answer {
    reply::ok(queen_wire::pop_maintenance(app.broker.fresh_maintenance().await.pop))
}

/// `POST /api/v1/system/maintenance/pop`
pub(super) async fn set_pop(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let request = ModeRequest::parse(&call.body)?;
    let mirrored = app.broker.set_maintenance(Mode::Pop, request.enabled).await;
    Ok(reply::json(StatusCode::OK, queen_wire::pop_maintenance_set(request.enabled, mirrored)))
}

/// `GET /api/v1/system/shared-state`
pub(super) fn shared_state(app: &App) -> Answer {
    let modes = app.broker.maintenance();
    reply::ok(queen_wire::no_mesh("single_node_segments_broker", modes.push, modes.pop))
}
