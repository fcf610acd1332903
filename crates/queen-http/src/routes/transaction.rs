use bytes::Bytes;
use hyper::StatusCode;
use queen_core::Error;
use queen_core::api::{PushItem, TxnOperation, TxnOutcome, TxnRequest, TxnResult};
use queen_types::{MessageId, Uuid};
use queen_wire::{
    TransactionRequest, TransactionRequestError, TxnLine, TxnOperation as WireOperation,
    transaction_committed, transaction_refused,
};

use super::Call;
use super::ack::unknown_statuses;
use crate::app::App;
use crate::error::{ApiError, statement};
use crate::reply::{self, Answer};

/// `POST /api/v1/transaction`. What was rolled back answers 200 with `success:false`.
pub(super) async fn transaction(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let id = MessageId::mint().0;
    let request = match TransactionRequest::parse(&call.body) {
        Ok(request) => request,
        Err(TransactionRequestError::NotJson(error)) => return Err(error.into()),
        Err(TransactionRequestError::Refused(text)) => return Err(bad_request(&id, &text)),
    };
    unknown_statuses(request.unknown_statuses);
    if request.operations.is_empty() {
        return Ok(reply::ok(transaction_committed(&id, [])));
    }
    let request = TxnRequest {
        operations: request.operations.into_iter().map(|op| operation(op, &call.body)).collect(),
        required_leases: request.required_leases,
    };
    let outcome = app.broker.transaction(call.context.tenant, request, call.context.producer).await;
    Ok(reply::ok(match outcome {
        Ok(TxnOutcome::Committed(results)) => transaction_committed(&id, results.iter().map(line)),
        Ok(TxnOutcome::RolledBack { reason, error, duplicates }) => {
            transaction_refused(&id, reason.as_str(), &error, &duplicates)
        }
        Err(Error::Statement { class, sqlstate, message }) => {
            let error = statement(class, sqlstate.as_deref(), &message);
            transaction_refused(&id, "db_error", &error, &[])
        }
        Err(Error::BadInput(text)) => return Err(bad_request(&id, &text)),
        Err(error) => return Err(ApiError::core("transaction failed", error)),
    }))
}

/// A refusal before the database, in the shape of a transaction answer.
fn bad_request(id: &Uuid, text: &str) -> ApiError {
    ApiError::with_body(StatusCode::BAD_REQUEST, transaction_refused(id, "bad_request", text, &[]))
}

fn operation(operation: WireOperation<'_>, body: &Bytes) -> TxnOperation {
    match operation {
        WireOperation::Push { queue, partition, transaction_id, payload, trace_id } => {
            TxnOperation::Push(PushItem {
                queue,
                partition,
                transaction_id,
                payload: payload.map_or(Bytes::from_static(b"{}"), |p| body.slice_ref(p.as_bytes())),
                trace_id,
            })
        }
        WireOperation::Ack { group, partition, transaction_id, status, lease, error } => {
            TxnOperation::Ack { group, partition, transaction_id, status, lease, error }
        }
    }
}

fn line(result: &TxnResult) -> TxnLine<'_> {
    match result {
        TxnResult::Push { transaction_id, message_id, queue, duplicate } => TxnLine::Push {
            transaction_id: transaction_id.as_ref(),
            message_id: *message_id,
            queue: queue.as_str(),
            duplicate: *duplicate,
        },
        TxnResult::Ack { transaction_id, dlq } => TxnLine::Ack { transaction_id, dlq: *dlq },
    }
}
