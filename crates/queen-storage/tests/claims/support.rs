use queen_pg::Tid;
use queen_storage::ack::{AckRequest, FullAck};
use queen_storage::pop::{Candidate, Claim, CursorHint, Hold, Seed};
use queen_storage::{FrameVerdict, Lane, NewFrame, PartitionKey, Storage, StorageOptions};
use queen_testkit::TestDb;
use queen_types::{
    AckStatus, Group, LeaseId, MessageId, PartitionId, PartitionName, QueueName, TenantId, TransactionId,
};
use tokio_postgres::Client;

pub(crate) const T: TenantId = TenantId::DEFAULT;

/// A claim of one partition for a minute.
pub(crate) fn claim(partition: PartitionId, cursor: CursorHint) -> Claim {
    let (lease_seconds, seed) = (60, Seed::Everything);
    Claim {
        group: Group::queue_mode(),
        lease: Some(LeaseId::mint()),
        messages: 10,
        hold: Hold::Gathered,
        candidates: vec![Candidate { partition, cursor, lease_seconds, delayed: 0, hold: 0, seed }],
    }
}

pub(crate) struct Fixture {
    pub(crate) storage: Storage,
    pub(crate) client: Client,
    pub(crate) db: TestDb,
}

impl Fixture {
    pub(crate) async fn new() -> anyhow::Result<Fixture> {
        let db = queen_testkit::db().await?;
        let storage = Storage::new(db.pool().await, StorageOptions::default());
        Ok(Fixture { storage, client: db.connect().await?, db })
    }

    /// A partition with messages `m0`, `m1`, ...
    pub(crate) async fn partition(&self, name: &str, messages: usize) -> anyhow::Result<PartitionId> {
        let key =
            PartitionKey { tenant: T, queue: QueueName::new("q")?, partition: PartitionName::new(name)? };
        let frames = (0..messages).map(|n| {
            Ok(NewFrame {
                message_id: MessageId::mint(),
                transaction_id: TransactionId::new(format!("m{n}"))?,
                trace_id: None,
                producer_sub: None,
                encrypted: false,
                payload: bytes::Bytes::from_static(b"{}"),
            })
        });
        let frames = frames.collect::<anyhow::Result<Vec<_>>>()?;
        let verdicts = self.storage.push(&[Lane { key: key.clone(), frames }]).await;
        anyhow::ensure!(verdicts[0].iter().all(|v| matches!(v, FrameVerdict::Queued { .. })), "{verdicts:?}");
        self.storage.partition_id(&key).await?.ok_or_else(|| anyhow::anyhow!("no partition"))
    }

    /// Leases up to `messages` messages; the ack of all of them.
    pub(crate) async fn claim(
        &self,
        partition: PartitionId,
        messages: i64,
        seconds: i32,
    ) -> anyhow::Result<FullAck> {
        let mut claim = Claim { messages, ..claim(partition, CursorHint::Unknown) };
        claim.candidates[0].lease_seconds = seconds;
        let (group, lease) = (claim.group.clone(), LeaseId::mint());
        claim.lease = Some(lease.clone());
        let claimed = self.storage.claim(&[claim]).await.remove(0)?;
        let delivery = self.storage.deliver(&group, Some(&lease), claimed.segments, usize::MAX).await?;
        let delivered = delivery.partitions.first().ok_or_else(|| anyhow::anyhow!("nothing to claim"))?;
        let row = delivered.row.ok_or_else(|| anyhow::anyhow!("no address"))?;
        Ok(FullAck { partition, group, lease, batch_end: delivered.batch_end, row })
    }

    pub(crate) async fn address(&self, partition: PartitionId) -> anyhow::Result<Tid> {
        let sql = "SELECT ctid FROM queen.log_consumers WHERE partition_id = $1";
        Ok(self.client.query_one(sql, &[&partition.0]).await?.get(0))
    }

    /// Everything that a cursor says, except which partition it is and when it was made and last claimed.
    pub(crate) async fn cursor(&self, partition: PartitionId) -> anyhow::Result<String> {
        let sql = "SELECT (to_jsonb(c) - 'partition_id' - 'created_at' - 'active_at')::text FROM queen.log_consumers c WHERE partition_id = $1";
        Ok(self.client.query_one(sql, &[&partition.0]).await?.get(0))
    }

    pub(crate) async fn slow(
        &self,
        ack: &FullAck,
        keys: std::ops::Range<usize>,
        status: AckStatus,
    ) -> anyhow::Result<bool> {
        let requests: Vec<AckRequest> = keys
            .map(|n| AckRequest {
                partition: ack.partition,
                group: ack.group.clone(),
                transaction_id: format!("m{n}"),
                status,
                lease: Some(ack.lease.clone()),
                error: None,
            })
            .collect();
        let (answers, _) = self.storage.ack(T, &requests).await?;
        Ok(answers.iter().all(|a| a.success))
    }
}
