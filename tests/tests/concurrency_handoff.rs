//! Transactions that hand messages on, from both brokers at once, by holders of whom some come too late.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use queen_core::Broker;
use queen_core::api::{ConfigureRequest, PopRequest, TxnOperation, TxnOutcome, TxnReason, TxnRequest};
use queen_tests::build::{item, keys, pop, queue};
use queen_tests::scene::World;
use queen_tests::seed::Runs;
use queen_tests::tables::check_tables;
use queen_types::{AckStatus, Group, OptionsEdit, PushStatus, TenantId};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;

const T: TenantId = TenantId::DEFAULT;
const SHORT: Duration = Duration::from_secs(4);
const WORKERS: usize = 8;
const PARTITIONS: usize = 5;
const MESSAGES: usize = 300;

/// What became of the hand-offs of one worker.
#[derive(Default)]
struct Done {
    committed: Vec<String>,
    refused: usize,
}

/// Hands messages from the source to the sink until the source is done: each batch is one transaction. One in eight
/// holders sleeps until its lease is over.
async fn hand_on(broker: Broker, space: String, mut rng: StdRng, until: Instant) -> anyhow::Result<Done> {
    let mut done = Done::default();
    let mut idle = 0;
    while idle < 8 {
        ensure!(Instant::now() < until, "the source is not done in time");
        let request = PopRequest {
            partitions: Some(rng.random_range(1..4)),
            lease_seconds: Some(1),
            wait: Some(Duration::from_millis(300)),
            ..pop(&format!("{space}.source"), rng.random_range(1..12))
        };
        let answer = broker.pop(T, request).await?;
        idle = if answer.is_empty() { idle + 1 } else { 0 };
        if answer.is_empty() {
            continue;
        }
        let mut operations = Vec::new();
        for batch in &answer.partitions {
            for (_, message) in &batch.messages {
                let key = message.transaction_id.to_string();
                operations.push(TxnOperation::Ack {
                    group: Group::queue_mode(),
                    partition: batch.partition_id,
                    transaction_id: key.clone(),
                    status: AckStatus::Completed,
                    lease: answer.lease.clone(),
                    error: None,
                });
                let sink = format!("{space}.sink{}", rng.random_range(0..2));
                let to = rng.random_range(0..PARTITIONS).to_string();
                operations.push(TxnOperation::Push(item(&sink, &to, &key)));
            }
        }
        let late = rng.random_ratio(1, 8);
        if late {
            tokio::time::sleep(Duration::from_millis(1100)).await;
        }
        let request = TxnRequest { operations, required_leases: answer.lease.clone().into_iter().collect() };
        match broker.transaction(T, request, None).await? {
            TxnOutcome::Committed(_) => {
                ensure!(!late, "a holder whose lease was over has committed");
                done.committed.extend(keys(&answer));
            }
            TxnOutcome::RolledBack { reason: TxnReason::AckRejected, .. } => done.refused += 1,
            TxnOutcome::RolledBack { reason, error, .. } => anyhow::bail!("{reason:?}: {error}"),
        }
    }
    Ok(done)
}

/// I-29 and I-31 without faults: the sinks, which do not deduplicate, hold every message of the source exactly once, and
/// nothing deadlocked. Broken by a transaction that commits under a lease that is over or another's, by an update that is
/// lost between two of them, or by one whose halves can be told apart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_message_is_handed_on_exactly_once() -> anyhow::Result<()> {
    let world = World::start().await?;
    world
        .client
        .batch_execute(&format!("ALTER DATABASE {} SET deadlock_timeout = '50ms'", world.db.name()))
        .await?;
    let mut runs = Runs::of(SHORT)?;
    let mut refused = 0;
    while let Some(run) = runs.next_run() {
        let outcome = one_run(&world, &format!("r{}n{}", run.seed, run.number), run.seed).await;
        refused += run.explain(outcome)?;
    }
    ensure!(refused > 0, "nobody came late");
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    ensure!(world.client.query_one(deadlocks, &[]).await?.get::<_, i64>(0) == 0);
    check_tables(&world.client).await?;
    world.stop().await;
    Ok(())
}

async fn one_run(world: &World, space: &str, seed: u64) -> anyhow::Result<usize> {
    for sink in ["sink0", "sink1"] {
        let edit = OptionsEdit { dedup_window_seconds: Some(0), ..OptionsEdit::default() };
        let queue = queue(&format!("{space}.{sink}"));
        world.brokers[0].configure(T, ConfigureRequest { queue, replace: false, edit }).await?;
    }
    let source = format!("{space}.source");
    let items = (0..MESSAGES).map(|n| item(&source, &(n % PARTITIONS).to_string(), &format!("m{n}")));
    let pushed = world.brokers[0].push(T, items.collect(), None).await;
    ensure!(pushed.iter().all(|r| r.status == PushStatus::Queued), "{pushed:?}");

    let until = Instant::now() + Duration::from_secs(30);
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        let broker = world.brokers[worker % 2].clone();
        let rng = StdRng::seed_from_u64(seed.wrapping_add(worker as u64));
        workers.spawn(hand_on(broker, space.to_owned(), rng, until));
    }
    let (mut told, mut refused) = (HashMap::<String, usize>::new(), 0);
    while let Some(worker) = workers.join_next().await {
        let done = worker??;
        refused += done.refused;
        for key in done.committed {
            *told.entry(key).or_default() += 1;
        }
    }
    let mut stored = HashMap::<String, usize>::new();
    for sink in ["sink0", "sink1"] {
        let request = PopRequest { partitions: None, ..pop(&format!("{space}.{sink}"), 10_000) };
        for key in keys(&world.brokers[1].pop(T, request).await?) {
            *stored.entry(key).or_default() += 1;
        }
    }
    ensure!(stored == told, "told and stored differ");
    for n in 0..MESSAGES {
        let times = stored.get(&format!("m{n}")).copied().unwrap_or(0);
        ensure!(times == 1, "m{n} was handed on {times} times");
    }
    let depth = world.brokers[0].depth(T, &queue(&source), None).await?.context("the source's depth")?;
    ensure!(depth.partitions.iter().all(|(_, pending, _)| *pending == 0), "{depth:?}");
    Ok(refused)
}
