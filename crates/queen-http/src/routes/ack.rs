use queen_core::api::AckItem;
use queen_wire::{AckLine, AckRequest, ack_answer};

use super::Call;
use crate::app::App;
use crate::error::ApiError;
use crate::reply::{self, Answer};

/// `POST /api/v1/ack`. The answer is an array of one.
pub(super) async fn single(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let request = AckRequest::parse_single(&call.body)?;
    ack(app, &call, request).await
}

/// `POST /api/v1/ack/batch`
pub(super) async fn batch(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let request = AckRequest::parse_batch(&call.body)?;
    ack(app, &call, request).await
}

async fn ack(app: &App, call: &Call<'_>, request: AckRequest<'_>) -> Result<Answer, ApiError> {
    if request.acks.is_empty() {
        return Ok(reply::ok(ack_answer([].into_iter())));
    }
    unknown_statuses(request.unknown_statuses);
    let mut keys = Vec::with_capacity(request.acks.len());
    let mut items = Vec::with_capacity(request.acks.len());
    for ack in request.acks {
        items.push(AckItem {
            partition: ack.partition,
            transaction_id: ack.transaction_id.as_ref().to_owned(),
            status: ack.status,
            lease: ack.lease,
            error: ack.error,
        });
        keys.push(ack.transaction_id);
    }
    let results = app.broker.ack(call.context.tenant, request.group, items).await;
    if results.iter().all(|result| result.overloaded) {
        let text = results.first().and_then(|result| result.error.as_deref());
        return Err(ApiError::overloaded(text.unwrap_or("overloaded")));
    }
    let lines = results.iter().zip(&keys).map(|(result, key)| AckLine {
        transaction_id: key,
        success: result.success,
        error: result.error.as_deref(),
        lease_released: result.lease_released,
        dlq: result.dlq,
        noop: result.noop,
        redelivers: result.redelivers,
        dropped: result.dropped,
    });
    Ok(reply::ok(ack_answer(lines)))
}

/// Counts status words that nobody knows: they were taken as failed, which their sender may not have meant.
pub(super) fn unknown_statuses(count: usize) {
    if count > 0 {
        metrics::counter!("queen_ack_unknown_status_total").increment(count as u64);
        tracing::debug!(target: "http", count, "acks with an unknown status were taken as failed");
    }
}
