//! Claims that share a call fail or succeed each for itself.

use bytes::Bytes;
use queen_storage::pop::{Candidate, Claim, ClaimedSegment, CursorHint, Hold, Seed, Tid};
use queen_storage::{Lane, NewFrame, PartitionKey, Storage, StorageOptions};
use queen_types::{
    Group, LeaseId, MessageId, PartitionId, PartitionName, QueueName, TenantId, TransactionId,
};

async fn pushed(storage: &Storage, name: &str) -> anyhow::Result<PartitionId> {
    let key = PartitionKey {
        tenant: TenantId::DEFAULT,
        queue: QueueName::new("q")?,
        partition: PartitionName::new(name)?,
    };
    let message_id = MessageId::mint();
    let frame = NewFrame {
        message_id,
        transaction_id: TransactionId::new(message_id.to_string())?,
        payload: Bytes::from_static(b"1"),
        trace_id: None,
        producer_sub: None,
        encrypted: false,
    };
    storage.push(&[Lane { key: key.clone(), frames: vec![frame] }]).await;
    storage.partition_id(&key).await?.ok_or_else(|| anyhow::anyhow!("no partition"))
}

fn claim(partition: PartitionId, cursor: CursorHint) -> Claim {
    let candidate =
        Candidate { partition, cursor, lease_seconds: 60, delayed: 0, hold: 0, seed: Seed::Everything };
    Claim {
        group: Group::queue_mode(),
        lease: Some(LeaseId::mint()),
        messages: 10,
        hold: Hold::Gathered,
        candidates: vec![candidate],
    }
}

/// One claim goes by the address of its cursor, the other makes its cursor, which the database refuses. Broken by an error
/// that takes the other claim along, and by one that passes for "nothing there".
#[tokio::test]
async fn a_claim_that_fails_fails_alone_and_says_so() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let storage = Storage::new(db.pool().await, StorageOptions::default());
    let (known, fresh) = (pushed(&storage, "known").await?, pushed(&storage, "fresh").await?);
    let first = storage.claim(&[claim(known, CursorHint::Unknown)]).await.remove(0)?;
    let client = db.connect().await?;
    let release = "UPDATE queen.log_consumers SET worker_id = NULL, batch_end = NULL, lease_expires_at = NULL
                   RETURNING ctid";
    let row: Tid = client.query_one(release, &[]).await?.get(0);
    assert_ne!(row, first.segments[0].row, "the release moved the cursor");
    client
        .batch_execute(
            "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
             CREATE TRIGGER refuse BEFORE INSERT ON queen.log_consumers
             FOR EACH ROW EXECUTE FUNCTION public.refuse()",
        )
        .await?;
    let results =
        storage.claim(&[claim(fresh, CursorHint::Unknown), claim(known, CursorHint::At(row))]).await;
    let refused = results[0].as_ref().expect_err("its cursor cannot be made");
    assert!(refused.to_string().contains("refused"), "{refused}");
    let taken: Vec<PartitionId> = match &results[1] {
        Ok(claimed) => claimed.segments.iter().map(|s: &ClaimedSegment| s.partition).collect(),
        Err(error) => anyhow::bail!("{error}"),
    };
    assert_eq!(taken, [known]);
    Ok(())
}
