//! Whole batches, completed by the address of their cursors: what is written, and what an address alone cannot do.

use queen_pg::Tid;
use queen_storage::ack::{AckRequest, FullAck};
use queen_storage::pop::{Candidate, Claim, CursorHint, Hold, Seed};
use queen_storage::{FrameVerdict, Lane, NewFrame, PartitionKey, Storage, StorageOptions};
use queen_testkit::{TestDb, wait_until};
use queen_types::{
    AckStatus, Group, LeaseId, MessageId, Offset, PartitionId, PartitionName, QueueName, TenantId,
    TransactionId,
};
use std::time::Duration;
use tokio_postgres::Client;

const T: TenantId = TenantId::DEFAULT;

struct Fixture {
    storage: Storage,
    client: Client,
    db: TestDb,
}

impl Fixture {
    async fn new() -> anyhow::Result<Fixture> {
        let db = queen_testkit::db().await?;
        let storage = Storage::new(db.pool().await, StorageOptions::default());
        Ok(Fixture { storage, client: db.connect().await?, db })
    }

    /// A partition with messages `m0`, `m1`, ...
    async fn partition(&self, name: &str, messages: usize) -> anyhow::Result<PartitionId> {
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
    async fn claim(&self, partition: PartitionId, messages: i64, seconds: i32) -> anyhow::Result<FullAck> {
        let (group, lease) = (Group::queue_mode(), LeaseId::mint());
        let candidate = Candidate {
            partition,
            cursor: CursorHint::Unknown,
            lease_seconds: seconds,
            delayed: 0,
            hold: 0,
            seed: Seed::Everything,
        };
        let claim = Claim {
            group: group.clone(),
            lease: Some(lease.clone()),
            messages,
            hold: Hold::Quiet,
            candidates: vec![candidate],
        };
        let claimed = self.storage.claim(&[claim]).await.remove(0)?;
        let delivery = self.storage.deliver(&group, Some(&lease), claimed.segments, usize::MAX).await?;
        let delivered = delivery.partitions.first().ok_or_else(|| anyhow::anyhow!("nothing to claim"))?;
        let row = delivered.row.ok_or_else(|| anyhow::anyhow!("no address"))?;
        Ok(FullAck { partition, group, lease, batch_end: delivered.batch_end, row })
    }

    async fn address(&self, partition: PartitionId) -> anyhow::Result<Tid> {
        let sql = "SELECT ctid FROM queen.log_consumers WHERE partition_id = $1";
        Ok(self.client.query_one(sql, &[&partition.0]).await?.get(0))
    }

    /// Everything that a cursor says, except which partition it is and when it was made and last claimed.
    async fn cursor(&self, partition: PartitionId) -> anyhow::Result<String> {
        let sql = "SELECT (to_jsonb(c) - 'partition_id' - 'created_at' - 'active_at')::text FROM queen.log_consumers c WHERE partition_id = $1";
        Ok(self.client.query_one(sql, &[&partition.0]).await?.get(0))
    }

    async fn slow(
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

/// The whole row, after a history that has left something in every column an ack may write: a failure that used a retry
/// and set a delay, a redelivery, a partial ack, and the mark of a conflated lease.
#[tokio::test]
async fn both_ways_leave_the_same_row() -> anyhow::Result<()> {
    let f = Fixture::new().await?;
    f.client
        .batch_execute(
            "INSERT INTO queen.queues (tenant_id, name, retry_backoff, retry_delay, retry_limit)
             VALUES ('00000000-0000-0000-0000-000000000001', 'q', 'fixed', 1, 5)",
        )
        .await?;
    let mut rows: Vec<Vec<String>> = Vec::new();
    for is_fast in [false, true] {
        let name = if is_fast { "fast" } else { "slow" };
        let partition = f.partition(name, 10).await?;
        let mut seen = Vec::new();
        let finish = async |ack: FullAck, keys: std::ops::Range<usize>| -> anyhow::Result<String> {
            // A claim resets these two; an ack meets them when something else set them.
            f.client
                .execute(
                    "UPDATE queen.log_consumers SET lease_conflated = TRUE, retry_at = '2020-01-01' WHERE partition_id = $1",
                    &[&partition.0],
                )
                .await?;
            let before = f.cursor(partition).await?;
            assert!(before.contains(ack.lease.as_str()), "{before}");
            if is_fast {
                let ack = FullAck { row: f.address(partition).await?, ..ack };
                let answers = f.storage.ack_full(std::slice::from_ref(&ack)).await?;
                let acked = answers[0].expect("the row is as the ack says");
                assert_eq!(acked.row, f.address(partition).await?);
                assert_ne!(acked.row, ack.row);
            } else {
                assert!(f.slow(&ack, keys, AckStatus::Completed).await?);
            }
            f.cursor(partition).await
        };
        let first = f.claim(partition, 3, 60).await?;
        assert_eq!((first.batch_end, first.row), (2, f.address(partition).await?));
        assert!(f.slow(&first, 1..2, AckStatus::Failed).await?);
        tokio::time::sleep(Duration::from_millis(20)).await;
        let again = f.claim(partition, 3, 60).await?;
        assert_eq!((again.batch_end, again.row), (2, f.address(partition).await?));
        assert!(f.cursor(partition).await?.contains("\"batch_retry_count\": 1"));
        seen.push(finish(again, 0..3).await?);
        let partial = f.claim(partition, 4, 60).await?;
        assert!(f.slow(&partial, 3..5, AckStatus::Completed).await?);
        seen.push(finish(partial, 5..7).await?);
        seen.push(finish(f.claim(partition, 100, 60).await?, 7..10).await?);
        rows.push(seen);
    }
    assert_eq!(rows[0], rows[1]);
    let last = &rows[1][2];
    for part in [
        "\"committed\": 9",
        "\"batch_end\": null",
        "\"worker_id\": null",
        "\"lease_expires_at\": null",
        "\"lease_acquired_at\": null",
        "\"lease_conflated\": false",
        "\"batch_retry_count\": 0",
        "\"retry_offset\": null",
        "\"retry_at\": \"2020-01-01T00:00:00+00:00\"",
        "\"attempt_offset\": null",
        "\"attempt_count\": 0",
        "\"total_consumed\": 10",
    ] {
        assert!(last.contains(part), "{part} in {last}");
    }
    Ok(())
}

/// Each condition alone keeps a row as it is: its address is right, and one thing else is not.
#[tokio::test]
async fn an_address_alone_grants_nothing() -> anyhow::Result<()> {
    let f = Fixture::new().await?;
    let partition = f.partition("p", 5).await?;
    let other = f.partition("other", 5).await?;
    let ack = f.claim(partition, 5, 60).await?;
    let others = f.claim(other, 5, 60).await?;
    let wrong = [
        FullAck { lease: LeaseId::mint(), ..ack.clone() },
        FullAck { batch_end: ack.batch_end - 1, ..ack.clone() },
        FullAck { batch_end: Offset::MAX, ..ack.clone() },
        FullAck { group: Group::new("g")?, ..ack.clone() },
        FullAck { partition: other, ..ack.clone() },
        // Addresses: another row's, one off the page, one beyond the table, none at all.
        FullAck { row: others.row, ..ack.clone() },
        FullAck { row: Tid { offset: 1000, ..ack.row }, ..ack.clone() },
        FullAck { row: Tid { block: 1 << 30, offset: 1 }, ..ack.clone() },
        FullAck { row: Tid { block: u32::MAX, offset: 0 }, ..ack.clone() },
    ];
    let before = (f.cursor(partition).await?, f.cursor(other).await?);
    for wrong in &wrong {
        assert_eq!(f.storage.ack_full(std::slice::from_ref(wrong)).await?, [None], "{wrong:?}");
    }
    assert_eq!(before, (f.cursor(partition).await?, f.cursor(other).await?));

    // All of them beside the right ones: each is judged for itself, and answers keep the order of the requests.
    let mut all = wrong.to_vec();
    all.insert(4, ack.clone());
    all.push(others.clone());
    let answers = f.storage.ack_full(&all).await?;
    let answered: Vec<usize> = (0..all.len()).filter(|i| answers[*i].is_some()).collect();
    assert_eq!(answered, [4, 10]);
    assert_eq!(answers[4].map(|a| a.row), Some(f.address(partition).await?));
    assert_eq!(answers[10].map(|a| a.row), Some(f.address(other).await?));
    assert_eq!(f.storage.ack_full(&all).await?, vec![None; 11], "the leases are gone");
    assert_eq!(f.storage.ack_full(&[]).await?, []);
    Ok(())
}

#[tokio::test]
async fn a_lease_that_is_over_or_taken_over_is_refused() -> anyhow::Result<()> {
    let f = Fixture::new().await?;
    let partition = f.partition("p", 5).await?;
    let over = f.claim(partition, 5, 1).await?;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(f.storage.ack_full(std::slice::from_ref(&over)).await?, [None]);
    let next = f.claim(partition, 5, 60).await?;
    // Even where the old holder learns the address of the new lease.
    let late = FullAck { row: next.row, ..over };
    assert_eq!(f.storage.ack_full(&[late.clone(), next.clone(), late]).await?.iter().flatten().count(), 1);
    let none = FullAck { row: f.address(partition).await?, ..next };
    assert_eq!(f.storage.ack_full(&[none]).await?, [None], "no lease at all");
    Ok(())
}

/// An extension and a partial ack move the row; the old address finds nothing, the new one everything.
#[tokio::test]
async fn a_moved_row_is_found_at_its_new_address_alone() -> anyhow::Result<()> {
    let f = Fixture::new().await?;
    let partition = f.partition("p", 5).await?;
    let ack = f.claim(partition, 5, 60).await?;
    let extended = f.storage.extend_lease(&[partition], &ack.group, &ack.lease, 600).await?;
    assert_eq!((extended.len(), extended[0].partition), (1, partition));
    assert_eq!(extended[0].row, f.address(partition).await?);
    assert_eq!(f.storage.ack_full(std::slice::from_ref(&ack)).await?, [None]);
    let moved = FullAck { row: extended[0].row, ..ack };
    assert!(f.storage.ack_full(&[moved]).await?[0].is_some());
    Ok(())
}

/// Vacuum gives places to other rows: an address then names another cursor, or a later life of the same one.
#[tokio::test]
async fn a_place_that_another_row_took_is_not_touched() -> anyhow::Result<()> {
    let f = Fixture::new().await?;
    let partition = f.partition("p", 50).await?;
    // The first version stays the root of the row's chain; the place of the second lease's is given away.
    let root = f.claim(partition, 1, 60).await?;
    assert!(f.storage.ack_full(&[root]).await?[0].is_some());
    let first = f.claim(partition, 1, 60).await?;
    assert!(f.storage.ack_full(std::slice::from_ref(&first)).await?[0].is_some());
    f.client.batch_execute("VACUUM queen.log_consumers").await?;
    // A later lease wanders over the page until it lies where the first one lay.
    let mut taken = f.claim(partition, 1, 600).await?;
    for _ in 0..100 {
        if taken.row == first.row {
            break;
        }
        taken.row = f.storage.extend_lease(&[partition], &taken.group, &taken.lease, 600).await?[0].row;
    }
    assert_eq!(taken.row, first.row, "a place is used again");
    let before = f.cursor(partition).await?;
    assert_eq!(f.storage.ack_full(&[first]).await?, [None]);
    assert_eq!(f.cursor(partition).await?, before);
    assert!(f.storage.ack_full(&[taken]).await?[0].is_some());
    Ok(())
}

/// Waits for a session that waits for a lock.
async fn waits_for_lock(client: &Client) -> anyhow::Result<()> {
    let sql = "SELECT count(*) FROM pg_stat_activity
               WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '-- Completes whole batches%'";
    wait_until("an ack that waits", Duration::from_secs(10), async || {
        client.query_one(sql, &[]).await.is_ok_and(|row| row.get::<_, i64>(0) > 0)
    })
    .await
}

/// Somebody holds the row while the ack comes by: after the wait the ack judges what is there then.
#[tokio::test]
async fn what_happens_while_an_ack_waits_for_the_row_counts() -> anyhow::Result<()> {
    let f = Fixture::new().await?;
    let watch = f.db.connect().await?;
    let ends = [
        // Another takes the lease over.
        ("UPDATE queen.log_consumers SET worker_id = 'thief' WHERE partition_id = $1", Some(false)),
        // A shorter batch under the same lease.
        ("UPDATE queen.log_consumers SET batch_end = 3 WHERE partition_id = $1", Some(false)),
        // The lease ends.
        (
            "UPDATE queen.log_consumers SET lease_expires_at = clock_timestamp() WHERE partition_id = $1",
            Some(false),
        ),
        // The group goes.
        ("DELETE FROM queen.log_consumers WHERE partition_id = $1", Some(false)),
        // Another place, and nothing else: whether that is a match differs between releases of PostgreSQL.
        (
            "UPDATE queen.log_consumers SET lease_expires_at = lease_expires_at + '1 s' WHERE partition_id = $1",
            None,
        ),
        // Nothing but a lock.
        ("SELECT FROM queen.log_consumers WHERE partition_id = $1 FOR UPDATE", Some(true)),
    ];
    for (i, (sql, completes)) in ends.into_iter().enumerate() {
        let partition = f.partition(&format!("p{i}"), 5).await?;
        let ack = f.claim(partition, 5, 60).await?;
        let before = f.cursor(partition).await?;
        f.client.batch_execute("BEGIN").await?;
        f.client.execute(sql, &[&partition.0]).await?;
        let waiting = tokio::spawn({
            let (storage, ack) = (f.storage.clone(), ack.clone());
            async move { storage.ack_full(&[ack]).await }
        });
        // Another session: what a transaction saw of the others' activity does not change for it.
        waits_for_lock(&watch).await?;
        f.client.batch_execute("COMMIT").await?;
        let answer = waiting.await??;
        let completed = answer[0].is_some();
        assert!(completes.is_none_or(|completes| completed == completes), "{sql}: {answer:?}");
        if !sql.starts_with("DELETE") {
            let after = f.cursor(partition).await?;
            assert_eq!(after.contains("\"committed\": 4"), completed, "{sql}: {after}, before {before}");
        }
    }
    Ok(())
}

/// Crossing calls over the same rows in opposite request orders lock them in one order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crossing_calls_do_not_deadlock() -> anyhow::Result<()> {
    let f = Fixture::new().await?;
    let mut acks = Vec::new();
    for n in 0..20 {
        let partition = f.partition(&format!("p{n}"), 3).await?;
        acks.push(f.claim(partition, 3, 60).await?);
    }
    let backwards: Vec<FullAck> = acks.iter().rev().cloned().collect();
    let calls = [acks.clone(), backwards.clone(), acks, backwards].map(|acks| {
        let storage = f.storage.clone();
        tokio::spawn(async move { storage.ack_full(&acks).await })
    });
    let mut done = 0;
    for call in calls {
        done += call.await??.iter().flatten().count();
    }
    assert_eq!(done, 20, "each batch is completed once");
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(f.client.query_one(deadlocks, &[]).await?.get::<_, i64>(0), 0);
    Ok(())
}

/// What the address is for: a transaction that stays open keeps every version of the row since, and an ack still reads
/// two pages.
#[tokio::test]
async fn dead_versions_cost_nothing() -> anyhow::Result<()> {
    let f = Fixture::new().await?;
    let partition = f.partition("p", 2).await?;
    let reader = f.db.connect().await?;
    reader
        .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM queen.log_consumers")
        .await?;
    let ack = f.claim(partition, 2, 600).await?;
    let mut row = ack.row;
    for _ in 0..2000 {
        row = f.storage.extend_lease(&[partition], &ack.group, &ack.lease, 600).await?[0].row;
    }
    assert!(row.block > 10, "the versions lie on many pages: {row}");
    // As the statement finds it, and as the primary key does: the key has an entry for each page's chain.
    let buffers = async |condition: &str| -> anyhow::Result<u64> {
        let sql = format!(
            "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF)
             SELECT 1 FROM queen.log_consumers c WHERE {condition}"
        );
        let mut total = None;
        for message in f.client.simple_query(&format!("SET enable_seqscan = off; {sql}")).await? {
            let tokio_postgres::SimpleQueryMessage::Row(row) = message else { continue };
            let line = row.get(0).unwrap_or_default().trim();
            if let (None, Some(text)) = (total, line.strip_prefix("Buffers: shared hit=")) {
                total = text.split(' ').next().and_then(|n| n.parse().ok());
            }
        }
        total.ok_or_else(|| anyhow::anyhow!("no buffers"))
    };
    let by_address = buffers(&format!("c.ctid = '{row}' AND c.worker_id = '{}'", ack.lease)).await?;
    assert_eq!(by_address, 1);
    let by_key =
        buffers(&format!("c.partition_id = '{partition}' AND c.consumer_group = '__QUEUE_MODE__'")).await?;
    assert!(by_key > 10, "{by_key}");
    assert!(f.storage.ack_full(&[FullAck { row, ..ack }]).await?[0].is_some());
    reader.batch_execute("COMMIT").await?;
    Ok(())
}
