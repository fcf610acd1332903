//! Invariants of damage: blobs that were changed behind the broker's back.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::Bytes;
use queen_core::api::{PopRequest, PushItem};
use queen_tests::build::{ack, acks, group, item, keys, pop_partition};
use queen_tests::scene::{TENANT, World};
use queen_tests::seed::{Run, Runs};
use queen_tests::tables::{Blobs, SegmentRow, check_tables_with, segments};
use queen_types::{AckStatus, Group, MessageId, PushStatus};
use rand::Rng;
use rand::rngs::StdRng;

const SHORT: Duration = Duration::from_secs(2);

/// A payload that compresses, or not.
fn payload(rng: &mut StdRng) -> Bytes {
    let length = rng.random_range(0..400);
    let text: String = if rng.random_bool(0.5) {
        "ab".repeat(length)
    } else {
        (0..length).map(|_| char::from(rng.random_range(b'a'..=b'z'))).collect()
    };
    Bytes::from(format!("\"{text}\""))
}

/// Bit flips, truncation, extension, or other bytes altogether.
fn damage(rng: &mut StdRng, blob: &mut Vec<u8>) {
    match rng.random_range(0..6) {
        0..3 => {
            for _ in 0..rng.random_range(1..4) {
                let at = rng.random_range(0..blob.len());
                blob[at] ^= 1 << rng.random_range(0..8);
            }
        }
        3 if rng.random_bool(0.5) => blob.truncate(rng.random_range(0..blob.len())),
        // Bytes that are text as well.
        3 => blob.truncate(3),
        4 => blob.extend((0..rng.random_range(1..40)).map(|_| rng.random::<u8>())),
        _ => *blob = (0..rng.random_range(0..300)).map(|_| rng.random()).collect(),
    }
}

async fn store(world: &World, segment: &SegmentRow) -> anyhow::Result<()> {
    let sql = "UPDATE queen.log_segments SET blob = $3 WHERE partition_id = $1 AND base_offset = $2";
    world.client.execute(sql, &[&segment.partition, &segment.base, &segment.blob]).await?;
    Ok(())
}

/// One queue of a few segments, of which some are damaged: at the head, in the middle, at the tail, next to each other.
async fn spoil(world: &World, run: &mut Run) -> anyhow::Result<(String, Vec<PushItem>, Vec<SegmentRow>)> {
    let queue = format!("q{}n{}", run.seed, run.number);
    let mut pushed = Vec::new();
    for s in 0..run.rng.random_range(3..8) {
        let items: Vec<PushItem> = (0..run.rng.random_range(1..5))
            .map(|i| PushItem { payload: payload(&mut run.rng), ..item(&queue, "p", &format!("k{s}.{i}")) })
            .collect();
        let results = world.brokers[0].push(TENANT, items.clone(), None).await;
        ensure!(results.iter().all(|r| r.status == PushStatus::Queued), "{results:?}");
        pushed.extend(items);
    }
    let mut damaged = Vec::new();
    for mut segment in segments(&world.client).await? {
        if run.rng.random_bool(0.4) {
            damage(&mut run.rng, &mut segment.blob);
            store(world, &segment).await?;
            damaged.push(segment);
        }
    }
    Ok((queue, pushed, damaged))
}

/// Takes everything, in batches of any size; what comes back are the offsets that were delivered.
async fn take_all(
    world: &World,
    run: &mut Run,
    request: &PopRequest,
    pushed: &[PushItem],
) -> anyhow::Result<Vec<i64>> {
    let mut delivered = Vec::new();
    // A claim that meets nothing but damage passes it and looks again a few times only.
    let mut empty = 0;
    while empty < 4 {
        let request = PopRequest { batch: run.rng.random_range(1..12), ..request.clone() };
        let answer = world.brokers[run.rng.random_range(0..2)].pop(TENANT, request.clone()).await?;
        empty = if answer.is_empty() { empty + 1 } else { 0 };
        for batch in &answer.partitions {
            for (_, message) in &batch.messages {
                let at = pushed.iter().position(|item| {
                    item.transaction_id.as_ref().is_some_and(|key| key.as_str() == &*message.transaction_id)
                });
                let at = at.with_context(|| format!("{} was never pushed", message.transaction_id))?;
                ensure!(
                    message.payload == pushed[at].payload,
                    "offset {at} was delivered with another payload"
                );
                ensure!(
                    delivered.last().is_none_or(|last| *last < at as i64),
                    "offset {at} after {delivered:?}"
                );
                delivered.push(at as i64);
            }
        }
        if !request.auto_ack && !answer.is_empty() {
            let answers = world.brokers[0]
                .ack(TENANT, request.group.clone(), acks(&answer, AckStatus::Completed))
                .await;
            ensure!(answers.iter().all(|a| a.success), "{answers:?}");
            ensure!(answers.iter().all(|a| a.lease_released), "the whole batch was acked: {answers:?}");
        }
    }
    Ok(delivered)
}

/// Broken by a blob that panics the broker, that is delivered as something else, that blocks its partition, or that
/// takes a neighbour's messages with it; by damaged messages that vanish, or that are filed twice, whether the batch is
/// leased or auto-acked.
#[tokio::test]
async fn i47_damaged_messages_are_filed_and_their_neighbours_delivered_in_order() -> anyhow::Result<()> {
    let world = World::start().await?;
    let mut runs = Runs::of(SHORT)?;
    let mut filed_in_all = 0;
    while let Some(mut run) = runs.next_run() {
        let spoilt = spoil(&world, &mut run).await;
        let (queue, pushed, damaged) = run.explain(spoilt)?;
        for (name, auto_ack) in [("leased", false), ("auto", true)] {
            let request = PopRequest { auto_ack, group: group(name), ..pop_partition(&queue, "p", 1) };
            let delivered = take_all(&world, &mut run, &request, &pushed).await;
            let delivered = run.explain(delivered.with_context(|| name))?;
            let filed = filed(&world, name).await?;
            for at in 0..pushed.len() as i64 {
                let times = filed.get(&at).copied().unwrap_or(0);
                let whole = delivered.contains(&at);
                let broken = damaged.iter().any(|s| s.base <= at && at <= s.end);
                let right = if whole { times == 0 } else { broken && times == 1 };
                assert!(
                    right,
                    "{name}: offset {at}, delivered {whole}, filed {times} times, seed {}",
                    run.seed
                );
            }
            filed_in_all += filed.len();
        }
        run.explain(check_tables_with(&world.client, Blobs::Damaged).await)?;
        world
            .client
            .batch_execute(
                "DELETE FROM queen.log_segments; DELETE FROM queen.log_consumers; DELETE FROM queen.log_dlq; \
             DELETE FROM queen.queues",
            )
            .await?;
    }
    assert!(filed_in_all > 0, "nothing was damaged in {} runs", runs.made());
    world.stop().await;
    Ok(())
}

async fn filed(world: &World, group: &str) -> anyhow::Result<BTreeMap<i64, i64>> {
    let sql = "SELECT \"offset\", count(*), bool_and(error = 'segment undecodable') FROM queen.log_dlq
               WHERE consumer_group = $1 GROUP BY 1";
    let rows = world.client.query(sql, &[&group]).await?;
    for row in &rows {
        ensure!(row.get::<_, bool>(2), "the text of the record of offset {}", row.get::<_, i64>(0));
    }
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Broken by damage in the middle of a batch that is filed each time the batch is redelivered, or that lets an ack of a
/// later message retire the damaged ones unseen.
#[tokio::test]
async fn i47_damage_inside_a_batch_is_filed_once_however_often_the_batch_returns() -> anyhow::Result<()> {
    let world = World::start().await?;
    let broker = &world.brokers[0];
    for s in 0..3 {
        broker.push(TENANT, (0..2).map(|i| item("q", "p", &format!("k{s}.{i}"))).collect(), None).await;
    }
    let mut all = segments(&world.client).await?;
    all[1].blob.truncate(3);
    store(&world, &all[1]).await?;
    for _ in 0..3 {
        let answer = broker.pop(TENANT, pop_partition("q", "p", 10)).await?;
        assert_eq!(keys(&answer), ["k0.0", "k0.1"]);
        broker.ack(TENANT, Group::queue_mode(), acks(&answer, AckStatus::Retry)).await;
    }
    assert!(filed(&world, Group::QUEUE_MODE).await?.is_empty());
    let answer = broker.pop(TENANT, pop_partition("q", "p", 10)).await?;
    broker.ack(TENANT, Group::queue_mode(), acks(&answer, AckStatus::Completed)).await;
    for _ in 0..3 {
        let answer = broker.pop(TENANT, pop_partition("q", "p", 10)).await?;
        assert_eq!(keys(&answer), ["k2.0", "k2.1"]);
        assert_eq!(filed(&world, Group::QUEUE_MODE).await?, BTreeMap::from([(2, 1), (3, 1)]));
        broker.ack(TENANT, Group::queue_mode(), acks(&answer, AckStatus::Retry)).await;
    }
    world.stop().await;
    Ok(())
}

/// Broken by damage that happens while messages are leased and that then fails their acks, or the push that repeats
/// one of them.
#[tokio::test]
async fn i47_damage_under_a_lease_fails_no_ack_and_no_repeated_push() -> anyhow::Result<()> {
    let world = World::start().await?;
    let broker = &world.brokers[0];
    broker.push(TENANT, (0..3).map(|i| item("q", "p", &format!("k{i}"))).collect(), None).await;
    let answer = broker.pop(TENANT, pop_partition("q", "p", 10)).await?;
    let mut all = segments(&world.client).await?;
    let last = all[0].blob.len() - 1;
    all[0].blob[last] ^= 0x40;
    store(&world, &all[0]).await?;
    let (place, lease) = (answer.partitions[0].partition_id, answer.lease.as_ref());
    let items = vec![ack(place, lease, "k0", AckStatus::Completed), ack(place, lease, "k1", AckStatus::Dlq)];
    let answers = broker.ack(TENANT, Group::queue_mode(), items).await;
    assert!(answers[0].success && answers[1].dlq, "{answers:?}");
    let row = world
        .client
        .query_one("SELECT \"offset\", transaction_id, payload_raw, error FROM queen.log_dlq", &[])
        .await?;
    assert_eq!((row.get::<_, i64>(0), row.get::<_, &str>(1)), (1, "k1"));
    assert_eq!(row.get::<_, &[u8]>(2), all[0].blob, "what is left of it is kept");
    assert!(row.get::<_, &str>(3).contains("segment undecodable"));
    let again = broker.push(TENANT, vec![item("q", "p", "k2"), item("q", "p", "k3")], None).await;
    assert_eq!((again[0].status, again[0].message_id), (PushStatus::Duplicate, MessageId::ZERO));
    assert_eq!(again[1].status, PushStatus::Queued);
    let rest = broker.pop(TENANT, pop_partition("q", "p", 10)).await?;
    assert_eq!(keys(&rest), ["k3"]);
    check_tables_with(&world.client, Blobs::Damaged).await?;
    world.stop().await;
    Ok(())
}
