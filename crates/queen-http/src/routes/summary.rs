//! `GET /api/v1/status/summary` and `GET /api/v1/system/config`.

use hyper::StatusCode;
use queen_wire::SummaryLine;

use super::Call;
use super::analytics::now;
use super::maintenance::spool_line;
use super::status::overview_line;
use crate::app::App;
use crate::error::ApiError;
use crate::reply::{self, Answer};

/// `GET /api/v1/status/summary`. It answers 200 while the database is away too, and says so.
pub(super) async fn summary(app: &App, call: Call<'_>) -> Answer {
    let summary = app.broker.summary(call.context.tenant).await;
    let modes = app.broker.maintenance();
    let per_second =
        |messages: i64| (messages as f64 / summary.series_seconds.max(1) as f64 * 100.0).round() / 100.0;
    let rates: Vec<_> = summary
        .series
        .iter()
        .map(|b| (b.bucket, [b.push_messages, b.pop_messages, b.ack_success].map(per_second)))
        .collect();
    reply::ok(queen_wire::summary(&SummaryLine {
        server: app.broker.server_id(),
        version: &app.options.version,
        now: now(),
        connected: summary.connected,
        schema_applied: app.broker.schema_applied(),
        draining: app.is_draining(),
        push_maintenance: modes.push,
        pop_maintenance: modes.pop,
        spool: spool_line(app, summary.connected),
        parked: summary.parked,
        stats: summary.overview.as_ref().map(overview_line),
        rates: &rates,
        warnings: app.options.config.as_ref().map_or(&[], |config| &config.warnings),
    }))
}

/// `GET /api/v1/system/config`
pub(super) fn config(app: &App) -> Result<Answer, ApiError> {
    let Some(config) = &app.options.config else {
        let text =
            "No configuration to show: this broker was given its options by the program that embeds it";
        return Err(ApiError::new(StatusCode::NOT_FOUND, text));
    };
    Ok(reply::ok(queen_wire::config(&app.options.version, &config.settings, &config.warnings)))
}
