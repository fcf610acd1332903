use hyper::StatusCode;
use queen_core::api::{PushAnswer, PushItem};
use queen_types::{PushStatus, QueueName};
use queen_wire::{PushLine, PushRequest, push_answer};

use super::Call;
use crate::app::App;
use crate::error::ApiError;
use crate::reply::{self, Answer};

/// `POST /api/v1/push`. The status is 201 whatever became of the single items; 500 with the same body when push
/// maintenance is on and some could not be spooled.
pub(super) async fn push(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let request = PushRequest::parse(&call.body)?;
    if request.items.is_empty() {
        return Ok(reply::json(StatusCode::CREATED, push_answer([].into_iter())));
    }
    let queues: Vec<QueueName> = request.items.iter().map(|item| item.queue.clone()).collect();
    let items = request
        .items
        .into_iter()
        .map(|item| PushItem {
            queue: item.queue,
            partition: item.partition,
            transaction_id: item.transaction_id,
            // The payload stays where it was received.
            payload: call.body.slice_ref(item.payload.as_bytes()),
            trace_id: None,
        })
        .collect();
    let PushAnswer { results, diverted } =
        app.broker.push_or_divert(call.context.tenant, items, call.context.producer).await;
    let lost = diverted && results.iter().any(|result| result.status == PushStatus::Failed);
    let status = if lost { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::CREATED };
    let lines = results.iter().zip(&queues).map(|(result, queue)| PushLine {
        message_id: result.message_id,
        transaction_id: result.transaction_id.as_ref(),
        queue: queue.as_str(),
        status: result.status,
        error: result.error.as_deref(),
    });
    Ok(reply::json(status, push_answer(lines)))
}
