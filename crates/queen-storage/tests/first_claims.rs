//! A group's first claims by the short way (`pop/claim_first.sql`): the same outcome as by the long one, whatever became
//! of the hint that led there.

use bytes::Bytes;
use queen_storage::pop::{Candidate, Claim, Claimed, CursorHint, Hold, Outcome, Seed};
use queen_storage::{Lane, NewFrame, PartitionKey, Storage, StorageOptions};
use queen_testkit::TestDb;
use queen_types::{
    Group, LeaseId, MessageId, PartitionId, PartitionName, QueueId, QueueName, StartPoint, TenantId,
    TransactionId,
};

/// A queue with partitions of 3, 2, 1 … segments of 4 messages, and the hints of a walk over it.
struct Bed {
    db: TestDb,
    storage: Storage,
    queue: QueueId,
}

impl Bed {
    async fn new(partitions: usize) -> anyhow::Result<Bed> {
        let db = queen_testkit::db().await?;
        let storage = Storage::new(db.pool().await, StorageOptions::default());
        let queue = QueueName::new("q")?;
        for number in 0..partitions {
            for _ in number..3.max(partitions) {
                let frames = (0..4).map(|_| frame()).collect::<anyhow::Result<_>>()?;
                let partition = PartitionName::new(number.to_string())?;
                let key = PartitionKey { tenant: TenantId::DEFAULT, queue: queue.clone(), partition };
                storage.push(&[Lane { key, frames }]).await;
            }
        }
        let registered =
            storage.register(TenantId::DEFAULT, &queue, &Group::queue_mode(), StartPoint::All, None).await?;
        Ok(Bed { db, storage, queue: registered.queue })
    }

    /// What a walk says of every partition, by name.
    async fn hints(&self, group: &Group) -> anyhow::Result<Vec<(PartitionId, CursorHint)>> {
        let found = self.storage.walk(self.queue, group, None, 100).await?;
        Ok(found.into_iter().map(|found| (found.partition, found.cursor)).collect())
    }

    /// What is stored of a group's cursors, by partition, without what differs by time and lease.
    async fn cursors(&self, group: &Group) -> anyhow::Result<Vec<String>> {
        let sql = "SELECT concat_ws(' ', p.name, c.committed, c.batch_end, c.worker_id IS NOT NULL, c.attempt_offset,
                          c.attempt_count, c.total_consumed, c.batch_retry_count, c.lease_conflated,
                          round(extract(epoch FROM c.lease_expires_at - c.lease_acquired_at)))
                   FROM queen.log_consumers c JOIN queen.log_partitions p ON p.id = c.partition_id
                   WHERE c.consumer_group = $1 ORDER BY p.name";
        let rows = self.db.connect().await?.query(sql, &[&group.as_str()]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    async fn claim(&self, claim: &Claim) -> anyhow::Result<Claimed> {
        Ok(self.storage.claim(std::slice::from_ref(claim)).await.remove(0)?)
    }

    async fn execute(&self, sql: &str) -> anyhow::Result<()> {
        Ok(self.db.connect().await?.batch_execute(sql).await?)
    }
}

fn frame() -> anyhow::Result<NewFrame> {
    let message_id = MessageId::mint();
    Ok(NewFrame {
        message_id,
        transaction_id: TransactionId::new(message_id.to_string())?,
        payload: Bytes::from_static(b"1"),
        trace_id: None,
        producer_sub: None,
        encrypted: false,
    })
}

fn claim(group: &Group, messages: i64, at: &[(PartitionId, CursorHint)]) -> Claim {
    let candidate = |&(partition, cursor): &(PartitionId, CursorHint)| Candidate {
        partition,
        cursor,
        lease_seconds: 60,
        delayed: 0,
        hold: 0,
        seed: Seed::Everything,
    };
    Claim {
        group: group.clone(),
        lease: Some(LeaseId::mint()),
        messages,
        hold: Hold::Gathered,
        candidates: at.iter().map(candidate).collect(),
    }
}

/// Partition, first offset, messages and attempt of every segment taken.
fn taken(claimed: &Claimed) -> Vec<(PartitionId, i64, usize, u32)> {
    claimed.segments.iter().map(|s| (s.partition, s.first_offset(), s.frames, s.attempt)).collect()
}

fn blind(hints: &[(PartitionId, CursorHint)]) -> Vec<(PartitionId, CursorHint)> {
    hints.iter().map(|(partition, _)| (*partition, CursorHint::Unknown)).collect()
}

#[tokio::test]
async fn the_short_way_takes_and_stores_what_the_long_way_does() -> anyhow::Result<()> {
    let bed = Bed::new(4).await?;
    for messages in [1, 4, 6, 16, 17, 25, 28, 36, 40, 1000] {
        let (short, long) = (Group::new(format!("s{messages}"))?, Group::new(format!("l{messages}"))?);
        let hints = bed.hints(&short).await?;
        assert!(hints.iter().all(|(_, hint)| matches!(hint, CursorHint::Missing { .. })), "{hints:?}");
        let by_hint = bed.claim(&claim(&short, messages, &hints)).await?;
        let by_search = bed.claim(&claim(&long, messages, &blind(&hints))).await?;
        assert_eq!(taken(&by_hint), taken(&by_search), "{messages}");
        let total: usize = by_hint.segments.iter().map(|s| s.frames).sum();
        assert_eq!(total as i64, messages.min(40), "4 partitions of 4, 3, 2 and 1 segments of 4");
        assert_eq!(bed.cursors(&short).await?, bed.cursors(&long).await?, "{messages}");
        for (one, other) in by_hint.outcomes.iter().zip(&by_search.outcomes) {
            match (one, other) {
                (Outcome::Taken { left: one, .. }, Outcome::Taken { left: other, .. }) => {
                    assert_eq!(one, other)
                }
                // The short way does not say why.
                (Outcome::Open, Outcome::Spent(_)) => {}
                _ => panic!("{one:?} {other:?}"),
            }
        }
        // What was taken has moved to a cursor, and the walk says where it lies.
        for (partition, hint) in bed.hints(&short).await? {
            assert!(
                !taken(&by_hint).iter().any(|t| t.0 == partition)
                    && matches!(hint, CursorHint::Missing { .. }),
                "what is leased is not found again"
            );
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_walk_says_where_the_cursor_lies() -> anyhow::Result<()> {
    let bed = Bed::new(2).await?;
    let group = Group::queue_mode();
    let hints = bed.hints(&group).await?;
    bed.claim(&claim(&group, 1, &hints[..1])).await?;
    bed.execute("UPDATE queen.log_consumers SET worker_id = NULL, batch_end = NULL, lease_expires_at = NULL")
        .await?;
    let rows = bed.db.connect().await?.query("SELECT ctid FROM queen.log_consumers", &[]).await?;
    let found = bed.hints(&group).await?;
    assert_eq!(found, [(hints[0].0, CursorHint::At(rows[0].get(0))), hints[1]]);
    // And what it says is good for a claim.
    let again = bed.claim(&claim(&group, 1, &found[..1])).await?;
    assert_eq!(taken(&again), [(hints[0].0, 0, 1, 2)]);
    Ok(())
}

#[tokio::test]
async fn a_hint_that_is_out_of_date_costs_nothing_but_a_look() -> anyhow::Result<()> {
    let bed = Bed::new(3).await?;
    let group = Group::queue_mode();
    let hints = bed.hints(&group).await?;
    // The first partition's row lies elsewhere, on the second the group has a cursor by now, and it is leased.
    bed.execute("UPDATE queen.log_partitions SET last_write_at = last_write_at WHERE name = '0'").await?;
    assert_eq!(taken(&bed.claim(&claim(&group, 3, &hints[1..2])).await?), [(hints[1].0, 0, 3, 1)]);
    let moved = bed.claim(&claim(&group, 2, &hints[..1])).await?;
    assert_eq!(taken(&moved), [(hints[0].0, 0, 2, 1)]);
    let leased = bed.claim(&claim(&group, 2, &hints[1..2])).await?;
    assert!(leased.segments.is_empty());
    assert!(
        matches!(leased.outcomes[..], [Outcome::Busy(rest)] if rest.as_secs() > 50),
        "{:?}",
        leased.outcomes
    );
    // Beside others, what is not as it was thought is left open.
    let all = bed.claim(&claim(&group, 100, &hints)).await?;
    assert_eq!(taken(&all), [(hints[2].0, 0, 4, 1)]);
    assert!(matches!(all.outcomes[..], [Outcome::Open, Outcome::Open, Outcome::Taken { left: 0, .. }]));
    Ok(())
}

/// Broken by a budget that runs over candidates which turn out to have a cursor: the pop would come back with too little.
#[tokio::test]
async fn what_is_not_claimed_takes_nothing_from_the_budget() -> anyhow::Result<()> {
    let bed = Bed::new(3).await?;
    let group = Group::queue_mode();
    let hints = bed.hints(&group).await?;
    assert_eq!(taken(&bed.claim(&claim(&group, 1, &hints[..1])).await?), [(hints[0].0, 0, 1, 1)]);
    let rest = bed.claim(&claim(&group, 12, &hints)).await?;
    let given: Vec<(PartitionId, i64)> =
        rest.segments.iter().map(|s| (s.partition, s.frames as i64)).collect();
    assert_eq!(given, [(hints[1].0, 4), (hints[1].0, 4), (hints[2].0, 4)]);
    Ok(())
}

#[tokio::test]
async fn a_cursor_that_somebody_makes_now_is_not_waited_for() -> anyhow::Result<()> {
    let bed = Bed::new(1).await?;
    let group = Group::queue_mode();
    let hints = bed.hints(&group).await?;
    let mut other = bed.db.connect().await?;
    let transaction = other.transaction().await?;
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended($2, uuid_hash_extended($1, 7781200)))";
    transaction.query(lock, &[&hints[0].0.0, &group.as_str()]).await?;
    let busy = bed.claim(&claim(&group, 1, &hints)).await?;
    assert!(matches!(busy.outcomes[..], [Outcome::Busy(rest)] if rest.is_zero()), "{:?}", busy.outcomes);
    transaction.rollback().await?;
    assert_eq!(taken(&bed.claim(&claim(&group, 1, &hints)).await?), [(hints[0].0, 0, 1, 1)]);
    Ok(())
}

#[tokio::test]
async fn nothing_is_claimed_on_a_partition_that_goes_away() -> anyhow::Result<()> {
    let bed = Bed::new(2).await?;
    let group = Group::queue_mode();
    let hints = bed.hints(&group).await?;
    let mut other = bed.db.connect().await?;
    let deletion = other.transaction().await?;
    deletion.batch_execute("SELECT FROM queen.log_partitions WHERE name = '0' FOR UPDATE").await?;
    assert_eq!(taken(&bed.claim(&claim(&group, 1, &hints)).await?), [(hints[1].0, 0, 1, 1)]);
    let delete = "DELETE FROM queen.log_segments WHERE partition_id = $1";
    deletion.query(delete, &[&hints[0].0.0]).await?;
    deletion.batch_execute("DELETE FROM queen.log_partitions WHERE name = '0'").await?;
    deletion.commit().await?;
    let gone = bed.claim(&claim(&group, 1, &hints[..1])).await?;
    assert_eq!((gone.segments.len(), gone.outcomes), (0, vec![Outcome::Nothing]));
    assert_eq!(bed.cursors(&group).await?.len(), 1, "the other partition's");
    Ok(())
}

/// Retention deleted the first two segments and a half of the third, which no claim may hand out again.
#[tokio::test]
async fn a_first_claim_begins_where_the_log_does() -> anyhow::Result<()> {
    let bed = Bed::new(1).await?;
    let (short, long) = (Group::new("short")?, Group::new("long")?);
    for (start, deleted, first) in [(6, 4, 6), (10, 8, 10), (11, 8, 11)] {
        bed.execute(&format!(
            "DELETE FROM queen.log_consumers; UPDATE queen.log_partitions SET log_start = {start};
             DELETE FROM queen.log_segments WHERE end_offset < {deleted}"
        ))
        .await?;
        let hints = bed.hints(&short).await?;
        for (group, at) in [(&short, hints.clone()), (&long, blind(&hints))] {
            let claimed = bed.claim(&claim(group, 2, &at)).await?;
            let messages = claimed.segments.iter().map(|s| s.frames).sum::<usize>();
            assert_eq!(claimed.segments[0].first_offset(), first);
            assert_eq!(messages as i64, 2.min(12 - start));
        }
        assert_eq!(bed.cursors(&short).await?, bed.cursors(&long).await?);
    }
    Ok(())
}
