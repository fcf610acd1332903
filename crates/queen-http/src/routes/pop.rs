use std::time::Duration;

use hyper::StatusCode;
use queen_core::Receipt;
use queen_core::api::{PartitionBatch, PopAnswer, PopRequest, PopTarget};
use queen_types::{PartitionName, QueueName};
use queen_wire::{MessageLine, PartitionLine, PopQuery, PopWriter, pop_refusal};

use super::Call;
use crate::app::App;
use crate::error::ApiError;
use crate::handed::Delivers;
use crate::options::HttpOptions;
use crate::reply::{self, Answer};

/// `GET /api/v1/pop?namespace=…&task=…`
pub(super) async fn discovery(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let query = PopQuery::parse(call.query)?;
    if query.namespace.is_none() && query.task.is_none() {
        let body = pop_refusal("namespace or task is required");
        return Err(ApiError::with_body(StatusCode::BAD_REQUEST, body));
    }
    let target = PopTarget::Discovery { namespace: query.namespace.clone(), task: query.task.clone() };
    pop(app, call, query, target, "").await
}

/// `GET /api/v1/pop/queue/:queue`
pub(super) async fn queue(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let query = PopQuery::parse(call.query)?;
    let queue = QueueName::new(call.param(0))?;
    pop(app, call, query, PopTarget::Queue(queue.clone()), queue.as_str()).await
}

/// `GET /api/v1/pop/queue/:queue/partition/:partition`
pub(super) async fn partition(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let query = PopQuery::parse(call.query)?;
    let queue = QueueName::new(call.param(0))?;
    let partition = PartitionName::new(call.param(1))?;
    pop(app, call, query, PopTarget::Partition(queue.clone(), partition), queue.as_str()).await
}

async fn pop(
    app: &App,
    call: Call<'_>,
    query: PopQuery,
    target: PopTarget,
    queue: &str,
) -> Result<Answer, ApiError> {
    let group = query.group.clone();
    let asked = match &target {
        PopTarget::Queue(queue) | PopTarget::Partition(queue, _) => Some(queue.clone()),
        PopTarget::Discovery { .. } => None,
    };
    let wait = wait(&query, &app.options);
    let request = PopRequest {
        target,
        group: query.group,
        batch: query.batch,
        partitions: query.partitions,
        wait,
        auto_ack: query.auto_ack,
        lease_seconds: query.lease_seconds,
        start: query.start,
    };
    let tenant = call.context.tenant;
    let answer = app.broker.pop(tenant, request).await.map_err(|e| ApiError::core("pop failed", e))?;
    let Some(body) = render(&answer, queue, group.as_str()) else { return Ok(reply::no_content()) };
    let mut reply = reply::ok(body);
    if let Some(receipt) = Receipt::of(tenant, asked.as_ref(), &group, &answer) {
        reply.extensions_mut().insert(Delivers { broker: app.broker.clone(), receipt });
    }
    Ok(reply)
}

/// How long the pop may park. No time at all is one attempt.
fn wait(query: &PopQuery, options: &HttpOptions) -> Option<Duration> {
    if !query.wait {
        return None;
    }
    let wanted = query.timeout.unwrap_or(options.pop_default_timeout);
    let ceiling = options.pop_max_timeout;
    let wait = if ceiling.is_zero() { wanted } else { wanted.min(ceiling) };
    (!wait.is_zero()).then_some(wait)
}

/// The body of the answer; `None` when nothing was delivered.
fn render(answer: &PopAnswer, queue: &str, group: &str) -> Option<Vec<u8>> {
    let first = answer.partitions.first()?;
    let payload_bytes =
        answer.partitions.iter().flat_map(|p| &p.messages).map(|(_, m)| m.payload.len()).sum();
    let lease = answer.lease.as_ref().map_or("", |l| l.as_str());
    let claimed = answer.partitions.len();
    let mut writer =
        PopWriter::open(queue, group, lease, line(first), claimed, (answer.len(), payload_bytes));
    for batch in &answer.partitions {
        writer.partition(line(batch));
        for (created_at, message) in &batch.messages {
            writer.message(MessageLine {
                id: message.id,
                transaction_id: message.transaction_id.as_ref(),
                trace_id: message.trace_id,
                payload: &message.payload,
                producer_sub: message.producer_sub.as_deref(),
                created_at: *created_at,
            });
        }
    }
    Some(writer.finish())
}

fn line(batch: &PartitionBatch) -> PartitionLine<'_> {
    PartitionLine {
        id: batch.partition_id,
        name: batch.partition.as_str(),
        delivery_attempt: batch.delivery_attempt,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_a_pop_parks() {
        let options = HttpOptions::default();
        let wait = |raw, options: &HttpOptions| super::wait(&PopQuery::parse(Some(raw)).unwrap(), options);
        assert_eq!(wait("timeout=5000", &options), None);
        assert_eq!(wait("wait=true", &options), Some(Duration::from_secs(30)));
        assert_eq!(wait("wait=true&timeout=5000", &options), Some(Duration::from_secs(5)));
        assert_eq!(wait("wait=true&timeout=0", &options), None);
        assert_eq!(wait("wait=true&timeout=18446744073709551615", &options), Some(Duration::from_secs(300)));
        let unclamped = HttpOptions { pop_max_timeout: Duration::ZERO, ..options };
        assert_eq!(wait("wait=true&timeout=900000", &unclamped), Some(Duration::from_secs(900)));
    }
}
