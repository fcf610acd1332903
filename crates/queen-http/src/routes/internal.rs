use hyper::StatusCode;
use hyper::header::{HeaderValue, LOCATION};

use super::Call;
use crate::app::App;
use crate::error::ApiError;
use crate::reply::{self, Answer};

/// `POST /internal/api/notify`: something landed in a queue, says whoever knows.
pub(super) async fn notify(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let (queue, partition) = queen_wire::notify(&call.body)?;
    let told = app.broker.notify(call.context.tenant, &queue, partition.as_ref()).await;
    told.map_err(|e| ApiError::core("notify failed", e))?;
    Ok(reply::ok(queen_wire::notified()))
}

/// `GET /internal/api/shared-state/stats`, its older name, and `GET /api/v1/status/mesh`.
pub(super) fn mesh_stats(app: &App) -> Answer {
    let modes = app.broker.maintenance();
    reply::ok(queen_wire::no_mesh("no_peers", modes.push, modes.pop))
}

/// `GET /auth/me`
pub(super) fn me(call: &Call<'_>) -> Answer {
    reply::ok(queen_wire::operator(&call.context.tenant.0.to_string()))
}

/// `GET /auth/login`: nobody has to log in.
pub(super) fn login() -> Answer {
    let mut answer = reply::no_content();
    *answer.status_mut() = StatusCode::SEE_OTHER;
    answer.headers_mut().insert(LOCATION, HeaderValue::from_static("/"));
    answer
}

/// `POST /auth/logout`
pub(super) fn logout() -> Answer {
    reply::ok(queen_wire::logged_out())
}
