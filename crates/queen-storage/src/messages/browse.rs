//! Browsing: stored messages, newest first, with what became of them. Which messages a page holds is decided from
//! offsets alone; only the segments of the page are read and decoded.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use queen_pg::{Conn, PgTimestamp, Row};
use queen_segment::{SegmentReader, TxnHash};
use queen_types::{
    MessageId, MessageStatus, Namespace, Offset, PartitionId, PartitionName, QueueName, Task, TenantId,
    Timestamp, Uuid,
};

use super::standing::{Judged, Mode, Standing};
use crate::admin::row::{column, named};
use crate::segment::Covering;
use crate::{Storage, StorageError, sql};

/// Messages of one page at most: a page is one answer in memory.
const LIMIT_MAX: u64 = 10_000;
/// Rows of `messages/page.sql`.
const ROWS: usize = 500;
/// Segments that are decoded from one statement.
const DECODED_AT_ONCE: usize = 64;

/// Which messages to browse.
#[derive(Debug, Clone, Default)]
pub struct BrowseFilter {
    /// Only this queue.
    pub queue: Option<QueueName>,
    /// Only partitions of this name.
    pub partition: Option<PartitionName>,
    /// Only queues of this namespace.
    pub namespace: Option<Namespace>,
    /// Only queues of this task.
    pub task: Option<Task>,
    /// Only messages in this state.
    pub status: Option<MessageStatus>,
    /// Stored at or after; `None`: in the last hour.
    pub from: Option<Timestamp>,
    /// Stored before.
    pub before: Option<Timestamp>,
    /// Messages of the page; 10,000 at most.
    pub limit: u64,
    /// Messages to skip.
    pub offset: u64,
}

/// A page of messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BrowsePage {
    /// Newest first.
    pub messages: Vec<StoredMessage>,
    /// Who consumes the partitions of the page.
    pub mode: Mode,
}

/// A stored message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMessage {
    /// Its id.
    pub id: MessageId,
    /// Its key.
    pub transaction_id: String,
    /// Hash of its key.
    pub hash: TxnHash,
    /// Its partition.
    pub partition_id: PartitionId,
    /// Name of the partition.
    pub partition: PartitionName,
    /// Its queue.
    pub queue: QueueName,
    /// Namespace of the queue.
    pub namespace: String,
    /// Task of the queue.
    pub task: String,
    /// Priority of the queue.
    pub priority: i32,
    /// Its state.
    pub status: MessageStatus,
    /// Its state to those who consume without a group.
    pub queue_status: MessageStatus,
    /// Named groups that are done with it.
    pub consumed_by: usize,
    /// Named groups in all.
    pub groups: usize,
    /// End of the live lease that covers it.
    pub leased_until: Option<Timestamp>,
    /// Trace id.
    pub trace_id: Option<Uuid>,
    /// Authenticated producer.
    pub producer_sub: Option<String>,
    /// First offset of its segment.
    pub base_offset: Offset,
    /// Its place in the segment.
    pub frame: usize,
    /// When it was stored.
    pub created_at: Timestamp,
    /// Its payload, byte for byte.
    pub payload: Bytes,
    /// The payload is an encryption envelope.
    pub encrypted: bool,
}

/// A segment without its blob.
struct Header {
    partition_id: PartitionId,
    partition: PartitionName,
    queue: QueueName,
    namespace: String,
    task: String,
    priority: i32,
    base: Offset,
    end: Offset,
    created_at: Timestamp,
}

/// A message that belongs on the page.
struct Pick {
    header: usize,
    at: Offset,
    judged: Judged,
}

impl Storage {
    /// One page of stored messages, newest first. Consumes nothing and locks nothing. A message whose segment cannot be
    /// decoded, or was deleted meanwhile, is left out.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn browse(&self, tenant: TenantId, filter: &BrowseFilter) -> Result<BrowsePage, StorageError> {
        let mut conn = self.inner.pool.get().await?;
        let mut page = BrowsePage::default();
        let (mut skip, mut left) = (filter.offset, filter.limit.min(LIMIT_MAX));
        let mut last: Option<(Timestamp, PartitionId, Offset)> = None;
        let mut mode = Mode::default();
        while left > 0 {
            let headers = headers(&mut conn, tenant, filter, last).await?;
            let Some(end) = headers.last() else { break };
            last = Some((end.created_at, end.partition_id, end.base));
            let standing = Standing::read(&mut conn, &ranges(&headers)).await?;
            let mut picks = Vec::new();
            'page: for (i, header) in headers.iter().enumerate() {
                for at in (header.base..=header.end).rev() {
                    let judged = standing.judge(header.partition_id, at);
                    if filter.status.is_some_and(|wanted| wanted != judged.status) {
                        continue;
                    }
                    if skip > 0 {
                        skip -= 1;
                        continue;
                    }
                    picks.push(Pick { header: i, at, judged });
                    left -= 1;
                    if left == 0 {
                        break 'page;
                    }
                }
            }
            let seen = standing.mode(picks.iter().map(|pick| headers[pick.header].partition_id));
            mode =
                Mode { queue_mode: mode.queue_mode || seen.queue_mode, groups: mode.groups.max(seen.groups) };
            read(&mut conn, &headers, &picks, &mut page.messages).await?;
            if headers.len() < ROWS {
                break;
            }
        }
        page.mode = mode;
        Ok(page)
    }
}

async fn headers(
    conn: &mut Conn,
    tenant: TenantId,
    filter: &BrowseFilter,
    last: Option<(Timestamp, PartitionId, Offset)>,
) -> Result<Vec<Header>, StorageError> {
    let queue = filter.queue.as_ref().map(QueueName::as_str);
    let partition = filter.partition.as_ref().map(PartitionName::as_str);
    let namespace = filter.namespace.as_ref().map(Namespace::as_str);
    let task = filter.task.as_ref().map(Task::as_str);
    let (from, before) = (filter.from.map(PgTimestamp), filter.before.map(PgTimestamp));
    let stamp = last.map(|(at, ..)| PgTimestamp(at));
    let (after, base) = (last.map(|(_, partition, _)| partition.0), last.map(|(.., base)| base));
    let params: [&(dyn queen_pg::ToSql + Sync); 10] =
        [&tenant.0, &queue, &partition, &namespace, &task, &from, &before, &stamp, &after, &base];
    conn.query(sql::MESSAGES_PAGE, &params).await?.iter().map(header).collect()
}

fn header(row: &Row) -> Result<Header, StorageError> {
    Ok(Header {
        partition_id: PartitionId(column(row, "partition_id")?),
        partition: named(row, "partition", PartitionName::new)?,
        queue: named(row, "queue", QueueName::new)?,
        namespace: column(row, "namespace")?,
        task: column(row, "task")?,
        priority: column(row, "priority")?,
        base: column(row, "base_offset")?,
        end: column(row, "end_offset")?,
        created_at: column::<PgTimestamp>(row, "created_at")?.0,
    })
}

/// The offsets that the segments span, by partition.
fn ranges(headers: &[Header]) -> BTreeMap<PartitionId, (Offset, Offset)> {
    let mut ranges: BTreeMap<PartitionId, (Offset, Offset)> = BTreeMap::new();
    for header in headers {
        let range = ranges.entry(header.partition_id).or_insert((header.base, header.end));
        *range = (range.0.min(header.base), range.1.max(header.end));
    }
    ranges
}

/// Reads the picked messages and adds them to the page, in their order.
async fn read(
    conn: &mut Conn,
    headers: &[Header],
    picks: &[Pick],
    page: &mut Vec<StoredMessage>,
) -> Result<(), StorageError> {
    let mut wanted: Vec<usize> = picks.iter().map(|pick| pick.header).collect();
    wanted.dedup();
    let mut rest = picks;
    for wanted in wanted.chunks(DECODED_AT_ONCE) {
        let partitions: Vec<Uuid> = wanted.iter().map(|i| headers[*i].partition_id.0).collect();
        let offsets: Vec<Offset> = wanted.iter().map(|i| headers[*i].base).collect();
        let mut opened: HashMap<usize, SegmentReader> = HashMap::new();
        let rows = conn.query(sql::SEGMENT_COVER, &[&partitions, &offsets]).await?;
        for covering in rows.iter().map(Covering::read) {
            let Some(i) = wanted.get(covering.request) else { continue };
            match SegmentReader::open(&covering.blob) {
                Ok(reader) => drop(opened.insert(*i, reader)),
                Err(error) => {
                    let (partition, base) = (headers[*i].partition_id, covering.base_offset);
                    tracing::warn!(%partition, base, %error, "a segment cannot be browsed");
                }
            }
        }
        let Some(last) = wanted.last() else { break };
        let split = rest.iter().take_while(|pick| pick.header <= *last).count();
        let (now, later) = rest.split_at(split);
        rest = later;
        page.extend(now.iter().filter_map(|pick| {
            let header = &headers[pick.header];
            let frame = usize::try_from(pick.at - header.base).ok()?;
            message(header, pick, frame, opened.get(&pick.header)?)
        }));
    }
    Ok(())
}

fn message(header: &Header, pick: &Pick, index: usize, reader: &SegmentReader) -> Option<StoredMessage> {
    let frame = reader.frame(index)?;
    Some(StoredMessage {
        id: frame.message_id,
        transaction_id: frame.transaction_id.to_owned(),
        hash: TxnHash::of(frame.transaction_id.as_bytes()),
        partition_id: header.partition_id,
        partition: header.partition.clone(),
        queue: header.queue.clone(),
        namespace: header.namespace.clone(),
        task: header.task.clone(),
        priority: header.priority,
        status: pick.judged.status,
        queue_status: pick.judged.queue_status,
        consumed_by: pick.judged.consumed_by,
        groups: pick.judged.groups,
        leased_until: pick.judged.leased_until,
        trace_id: frame.trace_id,
        producer_sub: frame.producer_sub.map(str::to_owned),
        base_offset: header.base,
        frame: index,
        created_at: header.created_at,
        payload: frame.payload,
        encrypted: frame.encrypted,
    })
}
