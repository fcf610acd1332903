use bytes::Bytes;
use queen_pg::Pool;
use queen_segment::TxnHash;
use queen_storage::{
    FrameVerdict, Lane, NewFrame, PartitionKey, Storage, StorageOptions, TxnFailure, TxnPush, admin,
};
use queen_testkit::TestDb;
use queen_types::{MessageId, OptionsEdit, PartitionName, QueueName, TenantId, TransactionId};

pub(crate) const TENANT: TenantId = TenantId::DEFAULT;

/// What became of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Stored(i64),
    Repeats(MessageId),
}

pub(crate) struct World {
    pub(crate) pool: Pool,
    pub(crate) client: tokio_postgres::Client,
    _db: TestDb,
}

pub(crate) fn queue() -> QueueName {
    QueueName::new("q").unwrap()
}

pub(crate) fn key(partition: &str) -> PartitionKey {
    PartitionKey { tenant: TENANT, queue: queue(), partition: PartitionName::new(partition).unwrap() }
}

fn frame(id: &str) -> NewFrame {
    NewFrame {
        message_id: MessageId::mint(),
        transaction_id: TransactionId::new(id).unwrap(),
        payload: Bytes::from_static(b"{}"),
        trace_id: None,
        producer_sub: None,
        encrypted: false,
    }
}

pub(crate) fn lane(partition: &str, ids: &[&str]) -> Lane {
    Lane { key: key(partition), frames: ids.iter().map(|id| frame(id)).collect() }
}

pub(crate) fn fates(verdicts: Vec<FrameVerdict>) -> Vec<Fate> {
    let fate = |verdict| match verdict {
        FrameVerdict::Queued { offset, .. } => Fate::Stored(offset),
        FrameVerdict::Duplicate { original } => Fate::Repeats(original),
        FrameVerdict::Failed(error) => panic!("{error}"),
    };
    verdicts.into_iter().map(fate).collect()
}

/// Pushes to one partition.
pub(crate) async fn push(storage: &Storage, partition: &str, ids: &[&str]) -> Vec<Fate> {
    let mut verdicts = storage.push(&[lane(partition, ids)]).await;
    fates(verdicts.pop().unwrap())
}

pub(crate) fn is_repeat(fate: &Fate) -> bool {
    matches!(fate, Fate::Repeats(_))
}

/// Pushes in a transaction; whether it was committed.
pub(crate) async fn commit(storage: &Storage, partition: &str, ids: &[&str]) -> bool {
    let pushes: Vec<TxnPush> =
        ids.iter().map(|id| TxnPush { key: key(partition), frame: frame(id) }).collect();
    match storage.transaction(TENANT, &pushes, &[], &[]).await {
        Ok(_) => true,
        Err(TxnFailure::Duplicate(_)) => false,
        Err(other) => panic!("{other:?}"),
    }
}

impl World {
    pub(crate) async fn new() -> World {
        let db = queen_testkit::db().await.unwrap();
        World { pool: db.pool().await, client: db.connect().await.unwrap(), _db: db }
    }

    /// A broker's storage, with a memory of its own.
    pub(crate) fn storage(&self) -> Storage {
        self.storage_of(64 << 20)
    }

    pub(crate) fn storage_of(&self, dedup_cache_bytes: usize) -> Storage {
        Storage::new(self.pool.clone(), StorageOptions { dedup_cache_bytes, ..StorageOptions::default() })
    }

    pub(crate) async fn window(&self, seconds: i32) {
        let edit = OptionsEdit { dedup_window_seconds: Some(seconds), ..OptionsEdit::default() };
        admin::configure(&self.pool, TENANT, &queue(), false, &edit).await.unwrap();
    }

    pub(crate) async fn age(&self, seconds: i32) {
        let sql = "UPDATE queen.log_segments SET created_at = created_at - make_interval(secs => $1::int4)";
        self.client.execute(sql, &[&seconds]).await.unwrap();
    }

    /// Appends one segment a message, as fast as the database can.
    pub(crate) async fn append(&self, partition: &str, ids: &[String]) {
        let hashes: Vec<Vec<u8>> = ids.iter().map(|id| TxnHash::of(id.as_bytes()).0.to_vec()).collect();
        let sql = "INSERT INTO queen.log_segments
             SELECT p.id, e.last + o, e.last + o, clock_timestamp(), h, '\\x00'
             FROM unnest($1::bytea[]) WITH ORDINALITY AS i (h, o), queen.log_partitions p,
                  LATERAL (SELECT COALESCE(max(end_offset), -1) AS last FROM queen.log_segments
                           WHERE partition_id = p.id) e
             WHERE p.name = $2";
        self.client.execute(sql, &[&hashes, &partition]).await.unwrap();
    }

    /// Keys that are stored twice.
    pub(crate) async fn stored_twice(&self) -> i64 {
        let sql = "SELECT count(*) FROM (
                SELECT 1 FROM queen.log_segments s,
                    LATERAL generate_series(0, (s.end_offset - s.base_offset)::int4) k
                GROUP BY s.partition_id, substr(s.hashes, 1 + 16 * k, 16) HAVING count(*) > 1) d";
        self.client.query_one(sql, &[]).await.unwrap().get(0)
    }
}
