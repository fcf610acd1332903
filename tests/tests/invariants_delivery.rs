//! Invariants of what consumers are given, with several of them at once and leases that really end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, ensure};
use queen_core::Broker;
use queen_core::api::{PopAnswer, PopRequest};
use queen_testkit::wait_for;
use queen_tests::build::{acks, group, item, keys, pop, pop_partition};
use queen_tests::scene::{TENANT, World};
use queen_tests::seed::Runs;
use queen_tests::tables::check_tables;
use queen_types::{AckStatus, Group, PartitionName, PushStatus, StartPoint};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const PARTITIONS: usize = 3;
const MESSAGES: usize = 40;
const PUSHERS: usize = 3;
const WORKERS: usize = 3;

/// What a group was given on a partition, in the order in which it was given.
type Seen = Arc<Mutex<BTreeMap<(Group, PartitionName), Vec<Vec<u64>>>>>;

/// The number of a message: every pusher counts for itself on every partition.
fn number(key: &str) -> u64 {
    key.rsplit('.').next().and_then(|text| text.parse().ok()).unwrap_or(u64::MAX)
}

async fn push_all(broker: Broker, queue: String, pusher: usize) -> anyhow::Result<()> {
    for i in 0..MESSAGES {
        let items =
            (0..PARTITIONS).map(|p| item(&queue, &format!("p{p}"), &format!("{pusher}.{i}"))).collect();
        let results = broker.push(TENANT, items, None).await;
        ensure!(results.iter().all(|r| r.status == PushStatus::Queued), "{results:?}");
    }
    Ok(())
}

fn record(seen: &Seen, group: &Group, answer: &PopAnswer) {
    let mut seen = seen.lock().expect("nobody panics while holding it");
    for batch in &answer.partitions {
        let ids = batch.messages.iter().map(|(_, m)| m.id.0.as_u64_pair().0 ^ m.id.0.as_u64_pair().1);
        seen.entry((group.clone(), batch.partition.clone())).or_default().push(ids.collect());
    }
}

/// Completes, gives back, or forgets what it is given, until its group has everything.
async fn work(
    broker: Broker,
    queue: String,
    group: Group,
    seen: Seen,
    mut rng: StdRng,
) -> anyhow::Result<()> {
    let done = |seen: &Seen| {
        let seen = seen.lock().expect("nobody panics while holding it");
        let mine = seen.iter().filter(|((g, _), _)| *g == group);
        let given: usize =
            mine.map(|(_, batches)| batches.iter().flatten().collect::<BTreeSet<_>>().len()).sum();
        given == PARTITIONS * PUSHERS * MESSAGES
    };
    while !done(&seen) {
        let request = PopRequest {
            group: group.clone(),
            partitions: Some(rng.random_range(1..3)),
            wait: Some(Duration::from_millis(300)),
            lease_seconds: Some(2),
            ..pop(&queue, rng.random_range(1..25))
        };
        let answer = broker.pop(TENANT, request).await?;
        record(&seen, &group, &answer);
        let status = match rng.random_range(0..20) {
            0 => continue,
            1..4 => AckStatus::Retry,
            _ => AckStatus::Completed,
        };
        let mut items = acks(&answer, status);
        if rng.random_bool(0.3) {
            items.truncate(items.len() / 2);
            // What is left is given back by a second call.
            items.extend(acks(&answer, AckStatus::Retry).into_iter().skip(items.len()));
        }
        broker.ack(TENANT, group.clone(), items).await;
    }
    Ok(())
}

/// Broken by a message that is answered `queued` and that a group never gets, although the group began with everything
/// or before the message came; or by a message that comes for the first time after a later one did.
#[tokio::test]
async fn i12_i13_every_message_reaches_every_group_and_first_deliveries_are_in_order() -> anyhow::Result<()> {
    let world = World::start().await?;
    let mut runs = Runs::of(Duration::ZERO)?;
    while let Some(run) = runs.next_run() {
        let queue = format!("q{}n{}", run.seed, run.number);
        let (everything, newest) = (group("everything"), group("newest"));
        let early = PopRequest { group: newest.clone(), start: Some(StartPoint::New), ..pop(&queue, 1) };
        assert!(world.brokers[0].pop(TENANT, early).await?.is_empty());
        let seen = Seen::default();
        let mut tasks = Vec::new();
        for n in 0..PUSHERS {
            let broker = world.brokers[n % 2].clone();
            tasks.push(tokio::spawn(push_all(broker, queue.clone(), n)));
        }
        for n in 0..2 * WORKERS {
            let broker = world.brokers[n % 2].clone();
            let group = if n < WORKERS { everything.clone() } else { newest.clone() };
            let rng = StdRng::seed_from_u64(run.seed ^ ((n as u64) << 32));
            tasks.push(tokio::spawn(work(broker, queue.clone(), group, seen.clone(), rng)));
        }
        for task in tasks {
            let limit = Duration::from_secs(15);
            let ended = tokio::time::timeout(limit, task).await.context("I-12: some messages never came");
            run.explain(ended?.context("a task").and_then(|outcome| outcome))?;
        }
        let order = stored_order(&world, &queue).await?;
        for ((group, partition), batches) in seen.lock().expect("all tasks are done").iter() {
            let mut first = BTreeSet::new();
            let firsts: Vec<u64> = batches.iter().flatten().copied().filter(|id| first.insert(*id)).collect();
            assert_eq!(
                firsts,
                order[partition.as_str()],
                "I-13: {group} on {partition:?}, seed {}",
                run.seed
            );
        }
        run.explain(check_tables(&world.client).await)?;
    }
    world.stop().await;
    Ok(())
}

/// The messages of every partition in the order of their offsets, as [`record`] notes them. Also looks at the order of
/// each pusher.
async fn stored_order(world: &World, queue: &str) -> anyhow::Result<BTreeMap<String, Vec<u64>>> {
    let mut order = BTreeMap::new();
    for p in 0..PARTITIONS {
        let name = format!("p{p}");
        let request =
            PopRequest { auto_ack: true, group: group("auditor"), ..pop_partition(queue, &name, 1000) };
        let answer = world.brokers[0].pop(TENANT, request).await?;
        let all = keys(&answer);
        for pusher in 0..PUSHERS {
            let mine = all.iter().filter(|key| key.starts_with(&format!("{pusher}.")));
            let numbers: Vec<u64> = mine.map(|key| number(key)).collect();
            ensure!(numbers.is_sorted(), "I-21: {pusher} on {name}: {numbers:?}");
        }
        let seen = Seen::default();
        record(&seen, &group("auditor"), &answer);
        let seen = seen.lock().expect("only here");
        order.insert(name, seen.values().flatten().flatten().copied().collect());
    }
    Ok(order)
}

/// Broken by a redelivery that begins elsewhere than right behind the cursor, after a lease ended by the clock, was
/// given back, or was acked in part; or by a message at or below the cursor that comes again.
#[tokio::test]
async fn i14_i15_a_redelivery_begins_behind_the_cursor_and_what_is_done_never_returns() -> anyhow::Result<()>
{
    let world = World::start().await?;
    let broker = &world.brokers[0];
    let mut runs = Runs::of(Duration::from_secs(1))?;
    while let Some(mut run) = runs.next_run() {
        let queue = format!("q{}n{}", run.seed, run.number);
        let all: Vec<String> = (0..30).map(|i| format!("k{i}")).collect();
        for chunk in all.chunks(run.rng.random_range(1..7)) {
            broker.push(TENANT, chunk.iter().map(|k| item(&queue, "p", k)).collect(), None).await;
        }
        let mut done = 0;
        let mut expiries = 0;
        while done < all.len() {
            let batch = run.rng.random_range(1..9);
            let request = PopRequest { lease_seconds: Some(1), ..pop_partition(&queue, "p", batch) };
            // Until the lease that was forgotten below is over, there is nothing.
            let answer = wait_for("the next batch", Duration::from_secs(5), async || {
                broker.pop(TENANT, request.clone()).await.ok().filter(|answer| !answer.is_empty())
            });
            let answer = answer.await?;
            let given = keys(&answer);
            assert_eq!(given, all[done..(done + batch as usize).min(all.len())], "seed {}", run.seed);
            let keep = run.rng.random_range(0..=given.len());
            let mut items = acks(&answer, AckStatus::Completed);
            items.truncate(keep);
            match run.rng.random_range(0..5) {
                0 if expiries < 1 => expiries += 1,
                1 => {
                    items.extend(acks(&answer, AckStatus::Retry).into_iter().skip(keep));
                    broker.ack(TENANT, Group::queue_mode(), items).await;
                    done += keep;
                }
                _ => {
                    broker.ack(TENANT, Group::queue_mode(), acks(&answer, AckStatus::Completed)).await;
                    done += given.len();
                }
            }
        }
        assert!(broker.pop(TENANT, pop(&queue, 10)).await?.is_empty(), "seed {}", run.seed);
    }
    world.stop().await;
    Ok(())
}

/// Broken by a first pop of one partition that leaves no trace when there is nothing to give: then a group that begins
/// after the newest message misses whatever is pushed before its next pop, and so everything.
#[tokio::test]
async fn i12_a_new_group_that_pops_one_partition_gets_what_is_pushed_after_its_first_pop()
-> anyhow::Result<()> {
    let world = World::start().await?;
    for (n, broker) in world.brokers.iter().enumerate() {
        broker.push(TENANT, vec![item("q", "p", &format!("before{n}"))], None).await;
        let request = PopRequest {
            group: group(&format!("g{n}")),
            start: Some(StartPoint::New),
            ..pop_partition("q", "p", 10)
        };
        assert!(broker.pop(TENANT, request.clone()).await?.is_empty());
        broker.push(TENANT, vec![item("q", "p", &format!("after{n}"))], None).await;
        assert_eq!(keys(&broker.pop(TENANT, request).await?), [format!("after{n}")]);
    }
    world.stop().await;
    Ok(())
}
