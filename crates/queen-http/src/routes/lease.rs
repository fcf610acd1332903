use queen_types::LeaseId;
use queen_wire::{extend_seconds, lease_extended};

use super::Call;
use crate::app::App;
use crate::error::ApiError;
use crate::reply::{self, Answer};

/// `POST /api/v1/lease/:leaseId/extend`. A lease that is not held is a 200 that says so.
pub(super) async fn extend(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let seconds = extend_seconds(&call.body)?;
    let text = call.param(0);
    // No lease was ever minted with such a character, and a text column cannot even be asked for it.
    if text.contains('\0') {
        return Ok(reply::ok(lease_extended(text, 0, None)));
    }
    let extension = app
        .broker
        .extend_lease(call.context.tenant, &LeaseId::from_client(text), seconds)
        .await
        .map_err(|e| ApiError::core("renew failed", e))?;
    Ok(reply::ok(lease_extended(text, extension.renewed, extension.expires_at)))
}
