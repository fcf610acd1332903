//! `GET /api/v1/dlq`.

use queen_types::{Group, PartitionId, PartitionName, QueueName, Timestamp, Uuid};

use crate::json::{self, Object};
use crate::query::{Query, QueryError};

const LIMIT: i64 = 100;

/// Filter and page of the listing.
#[derive(Debug, Clone, Default)]
pub struct DlqQuery {
    /// Only this queue.
    pub queue: Option<QueueName>,
    /// Only this partition.
    pub partition: Option<PartitionName>,
    /// Only this group.
    pub group: Option<Group>,
    /// Failed at or after.
    pub from: Option<Timestamp>,
    /// Failed at or before.
    pub to: Option<Timestamp>,
    /// Page size.
    pub limit: i64,
    /// Records to skip.
    pub offset: i64,
}

impl DlqQuery {
    /// Reads the parameters by the rules of management routes.
    ///
    /// # Errors
    /// A name out of bounds or an unreadable timestamp.
    pub fn parse(raw: Option<&str>) -> Result<DlqQuery, QueryError> {
        let query = Query::parse(raw)?;
        Ok(DlqQuery {
            queue: query.lenient_name("queue", QueueName::new)?,
            partition: query.lenient_name("partition", PartitionName::new)?,
            group: query.lenient_name("consumerGroup", Group::new)?,
            from: query.lenient_time("from")?,
            to: query.lenient_time("to")?,
            limit: query.lenient_page("limit", LIMIT),
            offset: query.lenient_page("offset", 0),
        })
    }
}

/// One dead letter.
#[derive(Debug, Clone, Copy)]
pub struct DlqLine<'a> {
    /// Record id.
    pub id: Uuid,
    /// Key of the message.
    pub transaction_id: &'a str,
    /// Its partition.
    pub partition_id: PartitionId,
    /// Its queue.
    pub queue: &'a str,
    /// Name of the partition.
    pub partition: &'a str,
    /// The group that gave it up.
    pub group: &'a str,
    /// Why.
    pub error: Option<&'a str>,
    /// Retries used.
    pub retry_count: i32,
    /// One JSON value; empty stands for `null`.
    pub payload: &'a [u8],
    /// Authenticated producer.
    pub producer_sub: Option<&'a str>,
    /// When the message was stored, where that is known.
    pub created_at: Option<Timestamp>,
    /// When it was given up.
    pub failed_at: Timestamp,
}

/// Body of the listing. `total` counts all that match, not only this page.
pub fn dlq_page<'a>(
    lines: impl IntoIterator<Item = DlqLine<'a>>,
    limit: i64,
    offset: i64,
    total: i64,
) -> Vec<u8> {
    json::object(|o| {
        o.array("messages", lines, |out, line| {
            let mut o = Object::open(out);
            o.uuid("id", &line.id)
                .str("transactionId", line.transaction_id)
                .uuid("partitionId", &line.partition_id.0)
                .str("queue", line.queue)
                .str("partition", line.partition)
                .str("consumerGroup", line.group)
                .opt("errorMessage", line.error)
                .int("retryCount", i64::from(line.retry_count));
            let payload = if line.payload.is_empty() { b"null" } else { line.payload };
            o.key("data").extend_from_slice(payload);
            o.opt("producerSub", line.producer_sub)
                .str("createdAt", &line.created_at.unwrap_or(line.failed_at).millis_text())
                .str("failedAt", &line.failed_at.millis_text());
            o.close();
        });
        o.object("pagination", |o| {
            o.int("limit", limit).int("offset", offset);
        });
        o.int("total", total);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_and_pages() {
        let q = DlqQuery::parse(Some(
            "queue=q&queue=r&consumerGroup=&limit=-1&offset=x&from=2031-04-05&conflation=9",
        ))
        .unwrap();
        assert_eq!(q.queue.unwrap().as_str(), "r");
        assert!(q.group.is_none() && q.to.is_none());
        assert_eq!((q.limit, q.offset), (0, 0));
        assert_eq!(q.from.unwrap().millis_text(), "2031-04-05T00:00:00.000Z");
        let q = DlqQuery::parse(Some("limit=99999999999999")).unwrap();
        assert_eq!(q.limit, 2_147_483_647);
        assert!(DlqQuery::parse(Some("queue=a%00")).is_err());
        assert!(DlqQuery::parse(Some("from=never")).unwrap_err().to_string().starts_with("from: "));
    }
}
