use hyper::StatusCode;
use queen_wire::{Query, Readiness};

use super::Call;
use crate::app::App;
use crate::error::ApiError;
use crate::reply::{self, Answer};

/// `GET /health`: the database answers, its schema is in place, and this broker is not going down.
pub(super) async fn health(app: &App) -> Answer {
    let connected = app.broker.database_alive().await;
    let healthy = connected && app.broker.schema_applied() && !app.is_draining();
    reply::json(status_of(healthy), queen_wire::health(healthy, connected, &app.options.version))
}

/// `GET /livez`: the runtime makes progress and no background task was given up; nothing else is asked.
pub(super) fn livez(app: &App) -> Answer {
    let alive = app.is_alive();
    reply::json(status_of(alive), queen_wire::livez(alive))
}

/// `GET /readyz`: a push sent at this moment would be accepted. `strict` asks for what `/health` asks.
pub(super) async fn readyz(app: &App, call: &Call<'_>) -> Result<Answer, ApiError> {
    let strict = Query::parse(call.query)?.lenient_bool("strict", false);
    let database_connected = app.broker.database_alive().await;
    let schema_applied = app.broker.schema_applied();
    let draining = app.is_draining();
    let spool_writable = app.broker.can_buffer();
    let served = database_connected && schema_applied;
    let ready = !draining && (served || (spool_writable && !strict));
    let body = queen_wire::readyz(Readiness {
        ready,
        database_connected,
        schema_applied,
        spool_writable,
        maintenance: app.broker.maintenance().push,
        draining,
    });
    Ok(reply::json(status_of(ready), body))
}

/// `GET /status`: the process runs.
pub(super) fn status() -> Answer {
    reply::ok(queen_wire::status())
}

/// `GET /metrics`
pub(super) fn metrics(app: &App) -> Answer {
    reply::ok(match &app.options.metrics_json {
        Some(render) => render.page().into_bytes(),
        None => queen_wire::metrics_zero(),
    })
}

/// `GET /metrics/prometheus`
pub(super) fn prometheus(app: &App) -> Answer {
    reply::exposition(app.options.prometheus.as_ref().map(|render| render.page()).unwrap_or_default())
}

fn status_of(good: bool) -> StatusCode {
    if good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}
