//! What must hold of the tables at any instant, whatever was done before: [`check_tables`].

use anyhow::{Context, ensure};
use queen_segment::{SegmentReader, TxnHash};
use queen_types::Uuid;
use tokio_postgres::Client;

/// Rules over rows alone: a statement that returns the rows that break the rule, as text.
const RULES: &[(&str, &str)] = &[
    (
        "I-1: segments of a partition do not overlap",
        "SELECT s.partition_id::text || ' at ' || s.base_offset FROM (
             SELECT partition_id, base_offset, end_offset,
                    lag(end_offset) OVER (PARTITION BY partition_id ORDER BY base_offset) AS before
             FROM queen.log_segments) s
         WHERE s.end_offset < s.base_offset OR s.before >= s.base_offset",
    ),
    (
        "I-2: no hole between log_start and the log's end",
        "SELECT s.partition_id::text || ' before ' || s.base_offset FROM (
             SELECT partition_id, base_offset,
                    lag(end_offset) OVER (PARTITION BY partition_id ORDER BY base_offset) AS before
             FROM queen.log_segments) s
         WHERE s.before + 1 <> s.base_offset
         UNION ALL
         SELECT p.id::text || ' ends at ' || p.last_offset || ' beyond its newest segment'
         FROM queen.log_partitions p
         WHERE p.last_offset > (SELECT max(s.end_offset) FROM queen.log_segments s WHERE s.partition_id = p.id)",
    ),
    (
        "I-4: 16 bytes of hash for every message",
        "SELECT s.partition_id::text || ' at ' || s.base_offset FROM (
             SELECT partition_id, base_offset, end_offset, hashes FROM queen.log_segments
             UNION ALL SELECT partition_id, base_offset, end_offset, hashes FROM queen.log_txns) s
         WHERE octet_length(s.hashes) <> 16 * (s.end_offset - s.base_offset + 1)",
    ),
    (
        "I-4: the hashes of a segment stand in one place",
        "SELECT t.partition_id::text || ' at ' || t.base_offset FROM queen.log_txns t
         JOIN queen.log_segments s ON s.partition_id = t.partition_id
          AND s.base_offset <= t.end_offset AND s.end_offset >= t.base_offset",
    ),
    (
        "I-6: created_at does not go back",
        "SELECT s.partition_id::text || ' at ' || s.base_offset FROM (
             SELECT partition_id, base_offset, created_at,
                    lag(created_at) OVER (PARTITION BY partition_id ORDER BY base_offset) AS before
             FROM queen.log_segments) s
         WHERE s.before > s.created_at",
    ),
    (
        "I-7: log_start is the first live segment, or one beyond the last offset",
        "SELECT p.id::text || ' starts at ' || p.log_start FROM queen.log_partitions p
         WHERE p.log_start <> COALESCE(
             (SELECT min(s.base_offset) FROM queen.log_segments s WHERE s.partition_id = p.id), p.last_offset + 1)",
    ),
    (
        "I-8: cursor and lease lie inside the log",
        "SELECT c.partition_id::text || ' ' || c.consumer_group || ': ' || c.committed || '..' ||
                COALESCE(c.batch_end::text, '-')
         FROM queen.log_consumers c JOIN queen.log_partitions p ON p.id = c.partition_id
         CROSS JOIN LATERAL (SELECT GREATEST(p.last_offset, (
             SELECT max(s.end_offset) FROM queen.log_segments s WHERE s.partition_id = p.id)) AS log_end) e
         WHERE c.committed < -1 OR c.committed > e.log_end OR c.batch_end < c.committed OR c.batch_end > e.log_end",
    ),
    (
        "I-10: a worker, a span and an expiry, or none of them",
        "SELECT c.partition_id::text || ' ' || c.consumer_group FROM queen.log_consumers c
         WHERE (c.worker_id IS NULL) <> (c.batch_end IS NULL) OR (c.worker_id IS NULL) <> (c.lease_expires_at IS NULL)",
    ),
    (
        "I-26: the retry budget lies between 0 and the limit",
        "SELECT c.partition_id::text || ' ' || c.consumer_group || ': ' || c.batch_retry_count
         FROM queen.log_consumers c JOIN queen.log_partitions p ON p.id = c.partition_id
         JOIN queen.queues q ON q.id = p.queue_id
         WHERE c.batch_retry_count < 0 OR c.batch_retry_count > q.retry_limit",
    ),
    (
        "I-27: one dead letter for a message and group, at or below the group's cursor",
        "SELECT d.partition_id::text || ' ' || d.consumer_group || ' at ' || d.\"offset\" FROM queen.log_dlq d
         GROUP BY d.partition_id, d.consumer_group, d.\"offset\" HAVING count(*) > 1
         UNION ALL
         SELECT d.partition_id::text || ' ' || d.consumer_group || ' above its cursor: ' || d.\"offset\"
         FROM queen.log_dlq d JOIN queen.log_consumers c USING (partition_id, consumer_group)
         WHERE d.\"offset\" > c.committed",
    ),
    (
        "rows of no partition",
        "SELECT o.what || ' of ' || o.partition_id FROM (
             SELECT 'hashes' AS what, partition_id FROM queen.log_txns
             UNION ALL SELECT 'a segment', partition_id FROM queen.log_segments
             UNION ALL SELECT 'a cursor', partition_id FROM queen.log_consumers) o
         WHERE o.partition_id NOT IN (SELECT id FROM queen.log_partitions)",
    ),
];

/// Which segments the test damaged itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blobs {
    /// None: every blob has to decode.
    Whole,
    /// Some: blobs are not looked at.
    Damaged,
}

/// Checks I-1, I-2, I-3, I-4, I-6, I-7, I-8, I-10, I-26 and the uniqueness of I-27 over a whole database.
///
/// # Errors
/// Names the rule and the rows that break it.
pub async fn check_tables(client: &Client) -> anyhow::Result<()> {
    check_tables_with(client, Blobs::Whole).await
}

/// The same, on a database whose blobs may be damaged.
///
/// # Errors
/// As [`check_tables`].
pub async fn check_tables_with(client: &Client, blobs: Blobs) -> anyhow::Result<()> {
    for (rule, sql) in RULES {
        let rows = client.query(*sql, &[]).await.with_context(|| format!("ask for {rule}"))?;
        let broken: Vec<&str> = rows.iter().map(|row| row.get(0)).collect();
        ensure!(broken.is_empty(), "{rule}: broken by {broken:?}");
    }
    if blobs == Blobs::Whole {
        for segment in segments(client).await? {
            segment.check().with_context(|| format!("{} at {}", segment.partition, segment.base))?;
        }
    }
    Ok(())
}

/// A row of `log_segments`.
#[derive(Debug, Clone)]
pub struct SegmentRow {
    /// Its partition.
    pub partition: Uuid,
    /// First offset.
    pub base: i64,
    /// Last offset.
    pub end: i64,
    /// Hashes of its transaction ids.
    pub hashes: Vec<u8>,
    /// Its blob.
    pub blob: Vec<u8>,
}

impl SegmentRow {
    /// Number of messages.
    pub fn count(&self) -> usize {
        usize::try_from(self.end - self.base + 1).unwrap_or(0)
    }

    /// I-3 and I-4: it decodes to as many frames as it has offsets, and its hashes are theirs.
    fn check(&self) -> anyhow::Result<()> {
        let reader = SegmentReader::open(&self.blob).context("I-3")?;
        ensure!(reader.len() == self.count(), "I-3: {} frames for {} offsets", reader.len(), self.count());
        let hashes = reader.frames(0, reader.len()).map(|f| TxnHash::of(f.transaction_id.as_bytes()).0);
        let hashes: Vec<u8> = hashes.flatten().collect();
        ensure!(hashes == self.hashes, "I-4: the stored hashes are not those of the frames");
        Ok(())
    }
}

/// Every segment, by partition and offset.
///
/// # Errors
/// When the database does not answer.
pub async fn segments(client: &Client) -> anyhow::Result<Vec<SegmentRow>> {
    let sql = "SELECT partition_id, base_offset, end_offset, hashes, blob FROM queen.log_segments
               ORDER BY partition_id, base_offset";
    let rows = client.query(sql, &[]).await?;
    Ok(rows
        .iter()
        .map(|row| SegmentRow {
            partition: row.get(0),
            base: row.get(1),
            end: row.get(2),
            hashes: row.get(3),
            blob: row.get(4),
        })
        .collect())
}

/// A fingerprint of every row version of every table of the product: equal ones mean that nothing was written between.
///
/// # Errors
/// When the database does not answer.
pub async fn row_versions(client: &Client) -> anyhow::Result<Vec<(String, i64, Option<String>)>> {
    let tables = "SELECT schemaname || '.' || tablename FROM pg_tables
                  WHERE schemaname IN ('queen', 'queen_streams') ORDER BY 1";
    let mut versions = Vec::new();
    for row in client.query(tables, &[]).await? {
        let table: String = row.get(0);
        let sql = format!(
            "SELECT count(*), md5(string_agg(t.ctid::text || ':' || t.xmin::text, ',' ORDER BY t.ctid)) FROM {table} t"
        );
        let row = client.query_one(&sql, &[]).await?;
        versions.push((table, row.get(0), row.get(1)));
    }
    ensure!(versions.len() > 5, "only {} tables were found", versions.len());
    Ok(versions)
}
