use queen_core::api::{DeadLetter, DlqFilter};
use queen_wire::{DlqLine, DlqQuery, dlq_page};

use super::Call;
use crate::app::App;
use crate::error::ApiError;
use crate::reply::{self, Answer};

/// `GET /api/v1/dlq`
pub(super) async fn list(app: &App, call: Call<'_>) -> Result<Answer, ApiError> {
    let query = DlqQuery::parse(call.query)?;
    let (limit, offset) = (query.limit, query.offset);
    let filter = DlqFilter {
        queue: query.queue,
        partition: query.partition,
        group: query.group,
        from: query.from,
        to: query.to,
        limit,
        offset,
    };
    let page = app
        .broker
        .dead_letters(call.context.tenant, filter)
        .await
        .map_err(|e| ApiError::core("dlq failed", e))?;
    Ok(reply::ok(dlq_page(page.records.iter().map(line), limit, offset, page.total)))
}

fn line(record: &DeadLetter) -> DlqLine<'_> {
    DlqLine {
        id: record.id,
        transaction_id: &record.transaction_id,
        partition_id: record.partition_id,
        queue: record.queue.as_str(),
        partition: record.partition.as_str(),
        group: &record.group,
        error: record.error.as_deref(),
        retry_count: record.retry_count,
        payload: record.payload.as_deref().unwrap_or_default(),
        producer_sub: record.producer_sub.as_deref(),
        created_at: record.message_created_at,
        failed_at: record.failed_at,
    }
}
