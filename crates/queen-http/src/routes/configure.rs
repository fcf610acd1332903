use queen_core::api::ConfigureRequest;
use queen_wire::{ConfigureRequest as WireRequest, configured};

use super::Call;
use crate::app::App;
use crate::error::ApiError;
use crate::reply::{self, Answer};

/// `POST /api/v1/configure`
pub(super) async fn configure(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let request = WireRequest::parse(&call.body)?;
    let queue = request.queue.clone();
    let request = ConfigureRequest { queue: request.queue, replace: request.replace, edit: request.edit };
    let done = app
        .broker
        .configure(call.context.tenant, request)
        .await
        .map_err(|e| ApiError::core("configure failed", e))?;
    Ok(reply::ok(configured(&queue, done.queue_id, &done.options)))
}
