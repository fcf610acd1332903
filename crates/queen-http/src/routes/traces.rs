use bytes::Bytes;
use hyper::StatusCode;
use queen_core::api::{NewTrace, Trace};
use queen_wire::{TraceLine, TraceNameLine, TraceRequest};

use super::Call;
use super::messages::partition;
use crate::app::App;
use crate::error::ApiError;
use crate::reply::{self, Answer};

/// Page sizes of the two listings that have pages.
const BY_NAME: i64 = 100;
const NAMES: i64 = 50;

/// `POST /api/v1/traces`
pub(super) async fn add(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let request = TraceRequest::parse(&call.body)?;
    let trace = NewTrace {
        partition: request.partition,
        transaction_id: request.transaction_id,
        group: request.group,
        event_type: request.event_type,
        data: Bytes::copy_from_slice(request.data.as_bytes()),
        names: request.names,
    };
    let id = app.broker.add_trace(call.context.tenant, &trace).await;
    let id = id.map_err(|e| ApiError::core("trace failed", e))?;
    Ok(reply::json(StatusCode::CREATED, queen_wire::traced(&id)))
}

/// `GET /api/v1/traces/:partitionId/:transactionId`
pub(super) async fn of_message(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let partition = partition(&call)?;
    // No event has such a key, and a text column cannot even be asked for it.
    if call.param(1).contains('\0') {
        return Ok(reply::ok(queen_wire::traces_of_message([])));
    }
    let traces = app.broker.traces_of(call.context.tenant, partition, call.param(1)).await;
    let traces = traces.map_err(|e| ApiError::core("list failed", e))?;
    Ok(reply::ok(queen_wire::traces_of_message(traces.iter().map(line))))
}

/// `GET /api/v1/traces/by-name/:traceName`
pub(super) async fn by_name(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let (limit, offset) = queen_wire::trace_page(call.query, BY_NAME)?;
    let name = call.param(0);
    if name.contains('\0') {
        return Ok(reply::ok(queen_wire::traces_by_name([], 0, limit, offset)));
    }
    let found = app.broker.traces_by_name(call.context.tenant, name, limit, offset).await;
    let (traces, total) = found.map_err(|e| ApiError::core("list failed", e))?;
    Ok(reply::ok(queen_wire::traces_by_name(traces.iter().map(line), total, limit, offset)))
}

/// `GET /api/v1/traces/names`
pub(super) async fn names(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let (limit, offset) = queen_wire::trace_page(call.query, NAMES)?;
    let found = app.broker.trace_names(call.context.tenant, limit, offset).await;
    let (names, total) = found.map_err(|e| ApiError::core("list failed", e))?;
    let lines = names.iter().map(|name| TraceNameLine {
        name: &name.name,
        traces: name.notes,
        messages: name.messages,
        last_seen: name.last_seen,
    });
    Ok(reply::ok(queen_wire::trace_names(lines, total, limit, offset)))
}

fn line(trace: &Trace) -> TraceLine<'_> {
    TraceLine {
        id: trace.id,
        event_type: &trace.event_type,
        data: &trace.data,
        group: &trace.group,
        created_at: trace.created_at,
        names: &trace.names,
        transaction_id: &trace.transaction_id,
        partition: trace.partition,
        place: trace.place.as_ref().map(|(queue, partition)| (queue.as_str(), partition.as_str())),
    }
}
