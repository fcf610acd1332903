//! The tables against the model.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use queen_segment::SegmentReader;
use queen_types::{Group, PartitionId, Uuid};
use tokio_postgres::Row;

use super::Scene;
use crate::model::{Cursor, Letter, Partition};
use crate::tables::{check_tables, segments};

impl Scene<'_> {
    /// Learns the ids of partitions that were made.
    pub(super) async fn read_ids(&mut self) -> anyhow::Result<()> {
        let sql = "SELECT q.name, p.name, p.id FROM queen.log_partitions p JOIN queen.queues q ON q.id = p.queue_id";
        for row in self.world.client.query(sql, &[]).await? {
            let (queue, name): (&str, &str) = (row.get(0), row.get(1));
            let partition = self.model.queues.get_mut(queue).and_then(|q| q.partitions.get_mut(name));
            let partition =
                partition.with_context(|| format!("{queue}/{name:?} exists and nobody made it"))?;
            partition.id = Some(PartitionId(row.get(2)));
        }
        ensure!(self.model.partitions().all(|p| p.id.is_some()), "a partition that was pushed to has no row");
        Ok(())
    }

    /// Every cursor against the model, and its way into the history.
    pub(super) async fn observe(&mut self) -> anyhow::Result<()> {
        let sql = "SELECT partition_id, consumer_group, committed, batch_end, worker_id,
                          lease_expires_at > clock_timestamp() AS live, batch_retry_count, retry_offset,
                          COALESCE(retry_at > clock_timestamp(), FALSE) AS waiting, attempt_offset, attempt_count,
                          total_consumed
                   FROM queen.log_consumers";
        let acked = std::mem::take(&mut self.acked);
        let mut rows = BTreeMap::new();
        for row in self.world.client.query(sql, &[]).await? {
            let group = Group::new(row.get::<_, &str>("consumer_group"))?;
            rows.insert((PartitionId(row.get("partition_id")), group), row);
        }
        for partition in self.model.partitions() {
            let id = partition.id.context("it has a row")?;
            for (group, cursor) in &partition.cursors {
                let place = (id, group.clone());
                let row = rows
                    .remove(&place)
                    .with_context(|| format!("{place:?} has no cursor row: {cursor:?}"))?;
                check_cursor(&row, cursor).with_context(|| format!("the cursor of {place:?}"))?;
                let committed = row.get("committed");
                self.history.began(&place, committed);
                self.history.cursor(&place, committed, acked)?;
            }
        }
        ensure!(rows.is_empty(), "cursors that nobody made: {:?}", rows.keys());
        Ok(())
    }

    /// The rules of the tables, the messages and the dead letters.
    pub(super) async fn compare_everything(&mut self) -> anyhow::Result<()> {
        let client = &self.world.client;
        check_tables(client).await?;
        let mut stored: BTreeMap<Uuid, Vec<SegmentReader>> = BTreeMap::new();
        for segment in segments(client).await? {
            stored.entry(segment.partition).or_default().push(SegmentReader::open(&segment.blob)?);
        }
        for partition in self.model.partitions() {
            let id = partition.id.context("it has a row")?;
            let row = client
                .query_one("SELECT log_start FROM queen.log_partitions WHERE id = $1", &[&id.0])
                .await?;
            ensure!(row.get::<_, i64>(0) == partition.log_start, "log_start of {id}");
            check_log(partition, stored.get(&id.0).map_or(&[], Vec::as_slice))
                .with_context(|| format!("{id}"))?;
            let sql = "SELECT consumer_group, \"offset\", message_id, transaction_id, payload_raw, error, retry_count,
                              producer_sub, trace_id
                       FROM queen.log_dlq WHERE partition_id = $1";
            let rows = client.query(sql, &[&id.0]).await?;
            ensure!(
                rows.len() == partition.letters.len(),
                "{} dead letters instead of {:?}",
                rows.len(),
                partition.letters
            );
            for row in &rows {
                check_letter(row, partition)?;
            }
        }
        Ok(())
    }
}

fn check_cursor(row: &Row, cursor: &Cursor) -> anyhow::Result<()> {
    let lease = cursor.lease.as_ref();
    let attempt = cursor.attempt;
    ensure!(
        row.get::<_, i64>("committed") == cursor.committed,
        "committed {}: {cursor:?}",
        row.get::<_, i64>("committed")
    );
    ensure!(row.get::<_, Option<i64>>("batch_end") == lease.map(|l| l.end), "batch_end: {cursor:?}");
    ensure!(row.get::<_, Option<&str>>("worker_id") == lease.map(|l| l.id.as_str()), "worker: {cursor:?}");
    ensure!(row.get::<_, Option<bool>>("live") == lease.map(|l| l.live), "live: {cursor:?}");
    ensure!(row.get::<_, i32>("batch_retry_count") == cursor.retries, "retries: {cursor:?}");
    ensure!(row.get::<_, Option<i64>>("retry_offset") == cursor.retry_offset, "retry_offset: {cursor:?}");
    ensure!(row.get::<_, bool>("waiting") == cursor.waiting, "waiting for a retry: {cursor:?}");
    ensure!(
        row.get::<_, Option<i64>>("attempt_offset") == attempt.map(|a| a.0),
        "attempt_offset: {cursor:?}"
    );
    ensure!(row.get::<_, i32>("attempt_count") == attempt.map_or(0, |a| a.1), "attempt_count: {cursor:?}");
    ensure!(row.get::<_, i64>("total_consumed") == cursor.consumed, "total_consumed: {cursor:?}");
    Ok(())
}

fn check_log(partition: &Partition, readers: &[SegmentReader]) -> anyhow::Result<()> {
    let start = usize::try_from(partition.log_start)?;
    let frames = readers.iter().flat_map(|reader| reader.frames(0, reader.len()));
    for ((at, message), frame) in partition.messages.iter().enumerate().skip(start).zip(frames) {
        ensure!(frame.message_id == message.id, "offset {at}: {} is stored", frame.message_id);
        ensure!(frame.payload == message.payload, "offset {at}: another payload is stored");
    }
    let stored: usize = readers.iter().map(SegmentReader::len).sum();
    ensure!(stored == partition.messages.len() - start, "{stored} messages are stored");
    Ok(())
}

fn check_letter(row: &Row, partition: &Partition) -> anyhow::Result<()> {
    let (group, at): (&str, i64) = (row.get(0), row.get(1));
    let mut letters = partition.letters.iter().filter(|l| l.group.as_str() == group && l.offset == at);
    let letter: &Letter = letters.next().with_context(|| format!("nobody filed {at} for {group}"))?;
    let message = partition.message(at).context("the model has it")?;
    ensure!(row.get::<_, i32>(6) == letter.retries, "retries of {letter:?}");
    ensure!(row.get::<_, &str>(3) == message.key, "key of {letter:?}");
    let error: &str = row.get(5);
    if letter.deleted {
        ensure!(row.get::<_, Option<&[u8]>>(4).is_none(), "payload of the deleted {letter:?}");
        ensure!(error.contains("payload deleted by retention"), "{error:?} for the deleted {letter:?}");
        return Ok(());
    }
    ensure!(error == letter.error, "error {error:?} for {letter:?}");
    ensure!(row.get::<_, Option<Uuid>>(2) == Some(message.id.0), "message id of {letter:?}");
    ensure!(row.get::<_, Option<&[u8]>>(4) == Some(&message.payload[..]), "payload of {letter:?}");
    ensure!(row.get::<_, Option<&str>>(7) == message.producer.as_deref(), "producer of {letter:?}");
    ensure!(row.get::<_, Option<Uuid>>(8) == message.trace, "trace of {letter:?}");
    Ok(())
}
