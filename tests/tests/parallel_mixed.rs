//! Pushes, pops, acks, transactions and deletions through two brokers of one database at the same time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use queen_core::api::{PopAnswer, PopRequest, PushItem, TxnOperation, TxnOutcome, TxnReason, TxnRequest};
use queen_core::{Broker, Error};
use queen_segment::SegmentReader;
use queen_testkit::wait_until;
use queen_tests::build::{acks, group, item, keys, pop, queue};
use queen_tests::scene::{TENANT, World};
use queen_tests::seed::Runs;
use queen_tests::tables::{check_tables, segments};
use queen_types::{AckStatus, Group, MessageId, PartitionId, PushStatus, StartPoint};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;
use tokio_postgres::Client;

async fn all_done(mut tasks: JoinSet<anyhow::Result<usize>>, limit: Duration) -> anyhow::Result<usize> {
    let ended = tokio::time::timeout(limit, async {
        let mut sum = 0;
        while let Some(task) = tasks.join_next().await {
            sum += task??;
        }
        anyhow::Ok(sum)
    });
    ended.await.context("the tasks do not end")?
}

/// Broken by a message that comes twice although it was completed, by one that never comes, or by one that comes after
/// a later one of its partition: two brokers that disagree about cursors, leases or offsets.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn i12_i13_i15_everything_comes_once_and_in_order_while_it_is_pushed() -> anyhow::Result<()> {
    const PUSHERS: usize = 6;
    const REQUESTS: usize = 40;
    const PARTITIONS: usize = 5;
    const EACH: usize = 3;
    const TOTAL: usize = PUSHERS * REQUESTS * EACH;
    let world = World::start().await?;
    let mut runs = Runs::of(Duration::ZERO)?;
    let run = runs.next_run().context("one run at least")?;
    let mut tasks = JoinSet::new();
    for pusher in 0..PUSHERS {
        let broker = world.brokers[pusher % 2].clone();
        let mut rng = StdRng::seed_from_u64(run.seed ^ pusher as u64);
        tasks.spawn(async move {
            for request in 0..REQUESTS {
                let items = (0..EACH)
                    .map(|i| {
                        let partition = format!("p{}", rng.random_range(0..PARTITIONS));
                        item("q", &partition, &format!("{pusher}.{request}.{i}"))
                    })
                    .collect();
                let results = broker.push(TENANT, items, None).await;
                ensure!(results.iter().all(|r| r.status == PushStatus::Queued), "{results:?}");
            }
            Ok(0)
        });
    }
    type Seen = BTreeMap<(PartitionId, Group), Vec<MessageId>>;
    let seen = Arc::new(Mutex::new(Seen::new()));
    for consumer in 0..8 {
        let group = group(if consumer < 5 { "first" } else { "second" });
        let (popper, acker) =
            (world.brokers[consumer % 2].clone(), world.brokers[(consumer + 1) % 2].clone());
        let mut rng = StdRng::seed_from_u64(run.seed ^ ((consumer as u64) << 32));
        let seen = seen.clone();
        tasks.spawn(async move {
            let given = |seen: &Seen| {
                seen.iter().filter(|((_, g), _)| *g == group).map(|(_, ids)| ids.len()).sum::<usize>()
            };
            while given(&seen.lock().expect("nobody panics while holding it")) < TOTAL {
                let request = PopRequest {
                    group: group.clone(),
                    partitions: Some(rng.random_range(1..4)),
                    wait: Some(Duration::from_millis(200)),
                    lease_seconds: Some(60),
                    ..pop("q", rng.random_range(1..30))
                };
                let answer = popper.pop(TENANT, request).await?;
                // Before the ack: nobody else can be given the partition until then.
                for batch in &answer.partitions {
                    let mut seen = seen.lock().expect("nobody panics while holding it");
                    let ids = seen.entry((batch.partition_id, group.clone())).or_default();
                    ids.extend(batch.messages.iter().map(|(_, m)| m.id));
                }
                let acker = if rng.random_bool(0.5) { &acker } else { &popper };
                let results = acker.ack(TENANT, group.clone(), acks(&answer, AckStatus::Completed)).await;
                ensure!(results.iter().all(|r| r.success && !r.noop), "{results:?}");
            }
            Ok(0)
        });
    }
    run.explain(all_done(tasks, Duration::from_secs(18)).await)?;
    let mut stored: BTreeMap<PartitionId, Vec<MessageId>> = BTreeMap::new();
    for segment in segments(&world.client).await? {
        let reader = SegmentReader::open(&segment.blob)?;
        let ids = stored.entry(PartitionId(segment.partition)).or_default();
        ids.extend(reader.frames(0, reader.len()).map(|frame| frame.message_id));
    }
    assert_eq!(stored.values().map(Vec::len).sum::<usize>(), TOTAL);
    let seen = std::mem::take(&mut *seen.lock().expect("all tasks are done"));
    for (partition, ids) in &stored {
        for name in ["first", "second"] {
            let given = seen.get(&(*partition, group(name)));
            assert_eq!(given, Some(ids), "{name} on {partition}, seed {}", run.seed);
        }
    }
    check_tables(&world.client).await?;
    world.stop().await;
    Ok(())
}

const QUEUES: usize = 3;

fn harmless(text: &str) -> anyhow::Result<()> {
    let lower = text.to_lowercase();
    ensure!(!lower.contains("40p01") && !lower.contains("deadlock"), "{text}");
    // A queue may be deleted again and again under a push.
    ensure!(lower.contains("was deleted while"), "an unexpected failure: {text}");
    Ok(())
}

fn some_items(rng: &mut StdRng, name: &str) -> Vec<PushItem> {
    (0..rng.random_range(1..7))
        .map(|i| {
            let (q, p) = (rng.random_range(0..QUEUES), rng.random_range(0..4));
            item(&format!("q{q}"), &format!("p{p}"), &format!("{name}.{i}"))
        })
        .collect()
}

async fn some_pop(broker: &Broker, rng: &mut StdRng, group: &Group) -> anyhow::Result<PopAnswer> {
    let request = PopRequest {
        group: group.clone(),
        partitions: Some(rng.random_range(1..5)),
        lease_seconds: Some(1),
        auto_ack: rng.random_bool(0.1),
        ..pop(&format!("q{}", rng.random_range(0..QUEUES)), rng.random_range(1..20))
    };
    match broker.pop(TENANT, request).await {
        Ok(answer) => Ok(answer),
        Err(Error::Statement { sqlstate, message, .. }) => {
            harmless(&format!("{message} {sqlstate:?}"))?;
            Ok(PopAnswer::empty())
        }
        Err(error) => Err(error.into()),
    }
}

async fn one_operation(broker: &Broker, rng: &mut StdRng, name: &str) -> anyhow::Result<()> {
    let group = if rng.random_bool(0.5) { Group::queue_mode() } else { group("named") };
    match rng.random_range(0..100) {
        0..3 => {
            let name = queue(&format!("q{}", rng.random_range(0..QUEUES)));
            if let Err(error) = broker.delete_queue(TENANT, &name).await {
                harmless(&format!("{error:?}"))?;
            }
        }
        3..40 => {
            for result in broker.push(TENANT, some_items(rng, name), None).await {
                result.error.as_deref().map_or(Ok(()), harmless)?;
            }
        }
        40..70 => {
            let answer = some_pop(broker, rng, &group).await?;
            let status = [AckStatus::Completed, AckStatus::Completed, AckStatus::Failed, AckStatus::Dlq]
                [rng.random_range(0..4)];
            for result in broker.ack(TENANT, group, acks(&answer, status)).await {
                ensure!(result.error.as_deref() != Some("db error"), "{result:?}");
            }
        }
        _ => {
            // Cursors of several queues, then pushes to partitions that need not be theirs.
            let mut operations = Vec::new();
            let mut required_leases = Vec::new();
            for _ in 0..rng.random_range(1..3) {
                let answer = some_pop(broker, rng, &group).await?;
                let messages =
                    answer.partitions.iter().flat_map(|b| b.messages.iter().map(|m| (b.partition_id, &m.1)));
                operations.extend(messages.map(|(partition, message)| TxnOperation::Ack {
                    group: group.clone(),
                    partition,
                    transaction_id: message.transaction_id.to_string(),
                    status: AckStatus::Completed,
                    lease: answer.lease.clone(),
                    error: None,
                }));
                required_leases.extend(answer.lease);
            }
            operations.extend(some_items(rng, name).into_iter().map(TxnOperation::Push));
            let outcome =
                broker.transaction(TENANT, TxnRequest { operations, required_leases }, None).await?;
            if let TxnOutcome::RolledBack { reason: TxnReason::DbError, error, .. } = outcome {
                harmless(&error)?;
            }
        }
    }
    Ok(())
}

/// How many deadlocks the database has seen, once every broker's session has reported.
async fn deadlocks(client: &Client) -> anyhow::Result<i64> {
    let others = "SELECT count(*) FROM pg_stat_activity
                  WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
    wait_until("the sessions of the brokers to end", Duration::from_secs(5), async || {
        client.query_one(others, &[]).await.is_ok_and(|row| row.get::<_, i64>(0) == 0)
    })
    .await?;
    let sql = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    Ok(client.query_one(sql, &[]).await?.get(0))
}

/// Broken by an actor that locks rows in another order than the others. Brokers repeat what a deadlock undid, so the
/// server's own count decides.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn i31_nothing_deadlocks() -> anyhow::Result<()> {
    let world = World::start().await?;
    let mut runs = Runs::of(Duration::from_secs(8))?;
    let mut operations = 0;
    while let Some(run) = runs.next_run() {
        let mut tasks = JoinSet::new();
        for worker in 0..16 {
            let broker = world.brokers[worker % 2].clone();
            let mut rng = StdRng::seed_from_u64(run.seed ^ ((worker as u64) << 32));
            let name = format!("{}.{worker}", run.number);
            tasks.spawn(async move {
                for n in 0..40 {
                    one_operation(&broker, &mut rng, &format!("{name}.{n}")).await?;
                }
                Ok(40)
            });
        }
        operations += run.explain(all_done(tasks, Duration::from_secs(60)).await)?;
    }
    check_tables(&world.client).await?;
    let World { brokers, client, db } = world;
    for broker in &brokers {
        broker.shutdown().await;
    }
    drop(brokers);
    assert_eq!(deadlocks(&client).await?, 0, "in {operations} operations");
    drop(db);
    Ok(())
}

/// What a group got in all.
async fn drain(broker: &Broker, group: &Group) -> anyhow::Result<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    let request = PopRequest { group: group.clone(), auto_ack: true, partitions: None, ..pop("q", 1000) };
    loop {
        let answer = broker.pop(TENANT, request.clone()).await?;
        if answer.is_empty() {
            return Ok(all);
        }
        for key in keys(&answer) {
            ensure!(all.insert(key.clone()), "{key} came twice");
        }
    }
}

/// Broken by a registration whose seeding passes a message that commits around it, in a partition that is there or in one
/// that is being made; or by a broker that does not know of a registration through the other one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn i36_a_new_group_misses_nothing_that_is_sent_after_it_came() -> anyhow::Result<()> {
    let world = World::start().await?;
    let stop = Arc::new(AtomicBool::new(false));
    // When each push was sent, with its key.
    let sent = Arc::new(Mutex::new(Vec::<(Instant, String)>::new()));
    let mut tasks = JoinSet::new();
    for pusher in 0..6 {
        let (broker, stop, sent) = (world.brokers[pusher % 2].clone(), stop.clone(), sent.clone());
        tasks.spawn(async move {
            let mut n = 0;
            while !stop.load(Ordering::SeqCst) {
                let key = format!("{pusher}.{n}");
                let fresh = item("q", &format!("born.{}", n / 3), &format!("{key}.fresh"));
                let items = vec![item("q", &format!("old{}", n % 4), &key), fresh];
                let names: Vec<String> =
                    items.iter().filter_map(|i| i.transaction_id.as_ref()).map(|k| k.to_string()).collect();
                let start = Instant::now();
                let results = broker.push(TENANT, items, None).await;
                ensure!(results.iter().all(|r| r.status == PushStatus::Queued), "{results:?}");
                let mut sent = sent.lock().expect("nobody panics while holding it");
                sent.extend(names.into_iter().map(|name| (start, name)));
                n += 1;
            }
            Ok(n)
        });
    }
    let mut came = Vec::new();
    for n in 0..12 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let group = group(&format!("new{n}"));
        let request = PopRequest {
            group: group.clone(),
            auto_ack: true,
            start: Some(StartPoint::New),
            partitions: None,
            ..pop("q", 1000)
        };
        let first = world.brokers[n % 2].pop(TENANT, request).await?;
        came.push((Instant::now(), group, keys(&first)));
    }
    stop.store(true, Ordering::SeqCst);
    all_done(tasks, Duration::from_secs(10)).await?;
    let sent = std::mem::take(&mut *sent.lock().expect("all tasks are done"));
    for (n, (at, group, first)) in came.into_iter().enumerate() {
        let mut got = drain(&world.brokers[(n + 1) % 2], &group).await?;
        got.extend(first);
        let missed: Vec<&String> = sent
            .iter()
            .filter(|(start, key)| *start > at && !got.contains(key))
            .map(|(_, key)| key)
            .collect();
        assert!(missed.is_empty(), "{group} missed {missed:?}");
        assert!(n == 0 || got.len() < sent.len(), "{group} began with everything");
    }
    let all: BTreeSet<String> = sent.iter().map(|(_, key)| key.clone()).collect();
    assert_eq!(drain(&world.brokers[0], &group("everything")).await?, all);
    check_tables(&world.client).await?;
    world.stop().await;
    Ok(())
}
