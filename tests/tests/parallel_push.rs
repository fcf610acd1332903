//! Pushes through two brokers of one database at the same time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use anyhow::{Context, ensure};
use queen_core::api::{PopRequest, PushItem};
use queen_tests::build::{item, pop_partition};
use queen_tests::scene::{TENANT, World};
use queen_tests::tables::check_tables;
use queen_types::{MessageId, PushStatus};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

const PUSHERS: usize = 8;
const PARTITIONS: usize = 3;

/// Every pusher sends `requests` requests of one to three messages to a partition of its choice; the number of stored
/// messages comes back.
async fn crowd(world: &World, name: &str, requests: usize) -> anyhow::Result<usize> {
    let mut tasks = JoinSet::new();
    for pusher in 0..PUSHERS {
        let (broker, name) = (world.brokers[pusher % 2].clone(), name.to_owned());
        let mut rng = StdRng::seed_from_u64(pusher as u64);
        tasks.spawn(async move {
            let mut stored = 0;
            for request in 0..requests {
                let partition = format!("p{}", rng.random_range(0..PARTITIONS));
                let items: Vec<PushItem> = (0..rng.random_range(1..4))
                    .map(|i| item("q", &partition, &format!("{name}.{pusher}.{request}.{i}")))
                    .collect();
                let results = broker.push(TENANT, items, None).await;
                ensure!(results.iter().all(|r| r.status == PushStatus::Queued), "{results:?}");
                stored += results.len();
            }
            anyhow::Ok(stored)
        });
    }
    let mut stored = 0;
    while let Some(task) = tasks.join_next().await {
        stored += task??;
    }
    Ok(stored)
}

/// Broken by an append that takes its offset or its time from before the append that it follows: overlaps, holes, or a
/// time that goes back. A segment an hour ahead, as a clock that was set back leaves it, must hold the later ones up.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn i01_i02_i06_parallel_appends_follow_each_other_without_hole_and_never_back_in_time()
-> anyhow::Result<()> {
    let world = World::start().await?;
    let before = crowd(&world, "before", 25).await?;
    check_tables(&world.client).await?;
    let copied: i64 = world
        .client
        .query_one(
            "WITH ahead AS (
                 INSERT INTO queen.log_segments (partition_id, base_offset, end_offset, created_at, hashes, blob)
                 SELECT s.partition_id, s.end_offset + 1, 2 * s.end_offset - s.base_offset + 1,
                        clock_timestamp() + interval '1 hour', s.hashes, s.blob
                 FROM queen.log_segments s
                 WHERE s.end_offset = (SELECT max(m.end_offset) FROM queen.log_segments m
                                       WHERE m.partition_id = s.partition_id)
                 RETURNING partition_id, end_offset - base_offset + 1 AS messages)
             SELECT CASE WHEN count(*) = $1 THEN sum(messages)::int8 END FROM ahead",
            &[&(PARTITIONS as i64)],
        )
        .await?
        .get::<_, Option<i64>>(0)
        .context("every partition has a newest segment")?;
    let after = crowd(&world, "after", 25).await?;
    check_tables(&world.client).await?;

    let row = world
        .client
        .query_one(
            "SELECT sum(end_offset - base_offset + 1)::int8,
                    count(DISTINCT partition_id) FILTER (WHERE created_at > now() + interval '50 minutes'),
                    count(*) FILTER (WHERE created_at > now() + interval '50 minutes')
             FROM queen.log_segments",
            &[],
        )
        .await?;
    let (messages, partitions, ahead): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    assert_eq!(messages, (before + after) as i64 + copied, "as many as were answered `queued`");
    assert_eq!(partitions, PARTITIONS as i64);
    assert!(ahead > 2 * partitions, "only {ahead} segments came after the ones of the future");
    world.stop().await;
    Ok(())
}

/// Broken by a probe that misses what another broker commits meanwhile, by a broker that trusts what it remembers, or by
/// an answer that names another message than the stored one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn i16_one_key_pushed_by_many_at_once_is_stored_once() -> anyhow::Result<()> {
    const ROUNDS: usize = 12;
    const TASKS: usize = 16;
    let world = World::start().await?;
    for round in 0..ROUNDS {
        let barrier = Arc::new(Barrier::new(TASKS));
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let (broker, barrier) = (world.brokers[task % 2].clone(), barrier.clone());
            // Everybody's shared key in every partition, beside a key of its own; half of them the other way round.
            let mut items: Vec<PushItem> = (0..PARTITIONS)
                .flat_map(|p| {
                    let partition = format!("p{p}");
                    let shared = item("q", &partition, &format!("shared.{round}"));
                    [shared, item("q", &partition, &format!("own.{round}.{task}"))]
                })
                .collect();
            if task % 4 < 2 {
                items.reverse();
            }
            tasks.spawn(async move {
                barrier.wait().await;
                let results = broker.push(TENANT, items.clone(), None).await;
                items.into_iter().zip(results).collect::<Vec<_>>()
            });
        }
        let mut ids: HashMap<String, HashSet<MessageId>> = HashMap::new();
        let mut queued: HashMap<String, usize> = HashMap::new();
        while let Some(task) = tasks.join_next().await {
            for (item, result) in task? {
                let key = result.transaction_id.as_str();
                if key.starts_with("own") {
                    assert_eq!(result.status, PushStatus::Queued, "{result:?}");
                    continue;
                }
                assert_ne!(result.status, PushStatus::Failed, "{result:?}");
                let partition = item.partition.to_string();
                *queued.entry(partition.clone()).or_default() +=
                    usize::from(result.status == PushStatus::Queued);
                ids.entry(partition).or_default().insert(result.message_id);
            }
        }
        for p in 0..PARTITIONS {
            let partition = format!("p{p}");
            assert_eq!(queued[&partition], 1, "round {round}, {partition}");
            assert_eq!(ids[&partition].len(), 1, "round {round}, {partition}: {ids:?}");
        }
    }
    for p in 0..PARTITIONS {
        let messages = read(&world, &format!("p{p}")).await?;
        let distinct: HashSet<&String> = messages.iter().collect();
        assert_eq!(messages.len(), ROUNDS * (TASKS + 1), "p{p}: one of each key");
        assert_eq!(distinct.len(), messages.len(), "p{p}: no key twice");
    }
    check_tables(&world.client).await?;
    world.stop().await;
    Ok(())
}

/// Keys of a partition in offset order.
async fn read(world: &World, partition: &str) -> anyhow::Result<Vec<String>> {
    let mut all = Vec::new();
    loop {
        let request = PopRequest { auto_ack: true, ..pop_partition("q", partition, 1000) };
        let answer = world.brokers[0].pop(TENANT, request).await?;
        if answer.is_empty() {
            return Ok(all);
        }
        all.extend(queen_tests::build::keys(&answer));
    }
}

/// Broken by requests that are mixed when they are written together, or by a broker that lets a later request pass an
/// earlier one that the other broker has answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn i21_requests_stay_whole_and_in_the_order_of_their_answers() -> anyhow::Result<()> {
    const REQUESTS: usize = 40;
    let world = World::start().await?;
    let mut tasks = JoinSet::new();
    for pusher in 0..PUSHERS {
        let brokers = world.brokers.clone();
        let mut rng = StdRng::seed_from_u64(pusher as u64);
        tasks.spawn(async move {
            for request in 0..REQUESTS {
                // The partitions take turns in the request; each has its own count.
                let count = rng.random_range(1..5);
                let items: Vec<PushItem> = (0..count)
                    .flat_map(|i| (0..PARTITIONS).map(move |p| (i, p)))
                    .map(|(i, p)| {
                        item("q", &format!("p{p}"), &format!("{pusher}.{request}.{}", count - 1 - i))
                    })
                    .collect();
                let results = brokers[(pusher + request) % 2].push(TENANT, items, None).await;
                ensure!(results.iter().all(|r| r.status == PushStatus::Queued), "{results:?}");
            }
            Ok(())
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    for p in 0..PARTITIONS {
        let keys = read(&world, &format!("p{p}")).await?;
        let mut next: BTreeMap<usize, usize> = BTreeMap::new();
        // The request that is not complete, with how many of its messages are to come.
        let mut open: Option<(usize, usize, usize)> = None;
        for key in &keys {
            let parts: Vec<usize> = key.split('.').map(str::parse).collect::<Result<_, _>>()?;
            let [pusher, request, left] = parts[..] else { anyhow::bail!("{key}") };
            match open {
                Some(expected) => assert_eq!((pusher, request, left), expected, "p{p}: a request was torn"),
                None => {
                    let turn = next.entry(pusher).or_default();
                    assert_eq!(request, *turn, "p{p}: pusher {pusher} overtook itself");
                    *turn += 1;
                }
            }
            open = left.checked_sub(1).map(|left| (pusher, request, left));
        }
        assert_eq!(open, None, "p{p}");
        assert!(next.len() == PUSHERS && next.values().all(|n| *n == REQUESTS), "p{p}: {next:?}");
    }
    check_tables(&world.client).await?;
    world.stop().await;
    Ok(())
}
