//! I-31, with seeks and deletions of groups and queues.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use queen_core::api::{AckItem, PopRequest, ReplayTarget, SeekTo, TxnOperation, TxnRequest};
use queen_core::{Broker, Error};
use queen_tests::build::{acks, group, item, pop, pop_partition, queue};
use queen_tests::scene::World;
use queen_tests::tables::check_tables;
use queen_types::{AckStatus, StartPoint, Timestamp};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::support::T;

const QUEUES: [&str; 2] = ["one", "two"];
const PARTITIONS: [&str; 4] = ["a", "b", "c", "d"];
const GROUPS: [&str; 2] = ["g", "h"];

/// Runs for as long; `QUEEN_TEST_SECONDS` for a long run.
fn lasts() -> Duration {
    let seconds = std::env::var(queen_tests::seed::SECONDS).ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(4))
}

async fn deadlocks(world: &World) -> anyhow::Result<i64> {
    let sql = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    Ok(world.client.query_one(sql, &[]).await?.get(0))
}

/// Broken by any two that take their locks in different orders: the server then ends one of them with 40P01, which the
/// broker would try again and hide, so the server's own count is asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn i31_nothing_deadlocks_with_a_seek_or_a_deletion() -> anyhow::Result<()> {
    let world = World::start().await?;
    let given = std::env::var(queen_tests::seed::SEED).ok().and_then(|text| text.parse().ok());
    let seed: u64 = given.unwrap_or_else(rand::random);
    let end = Instant::now() + lasts();
    let done = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    for worker in 0..12u64 {
        let broker = world.brokers[worker as usize % 2].clone();
        let done = done.clone();
        tasks.push(tokio::spawn(async move {
            let mut rng = StdRng::seed_from_u64(seed.wrapping_add(worker));
            while Instant::now() < end {
                step(&broker, &mut rng, worker).await?;
                done.fetch_add(1, Ordering::Relaxed);
            }
            anyhow::Ok(())
        }));
    }
    for task in tasks {
        task.await?.with_context(|| format!("{}={seed}", queen_tests::seed::SEED))?;
    }
    ensure!(done.load(Ordering::Relaxed) > 100, "{} operations", done.load(Ordering::Relaxed));
    // Sessions report what they counted once they are idle.
    tokio::time::sleep(Duration::from_millis(1200)).await;
    let found = deadlocks(&world).await?;
    ensure!(found == 0, "{found} deadlocks; {}={seed}", queen_tests::seed::SEED);
    // A group that goes back gives up messages once more, so the rule of dead letters does not hold.
    world.client.batch_execute("DELETE FROM queen.log_dlq").await?;
    check_tables(&world.client).await?;
    world.stop().await;
    Ok(())
}

/// One random operation. What the database refuses for a deadlock is an error, anything else an outcome.
async fn step(broker: &Broker, rng: &mut StdRng, worker: u64) -> anyhow::Result<()> {
    let pick = |rng: &mut StdRng, of: &[&'static str]| *of.choose(rng).unwrap_or(&"");
    let name = pick(rng, &QUEUES);
    let lane = pick(rng, &PARTITIONS);
    let who = group(pick(rng, &GROUPS));
    let key = format!("{worker}-{}", rng.random::<u32>());
    let everywhere = |batch| PopRequest {
        group: who.clone(),
        partitions: None,
        start: Some(StartPoint::All),
        lease_seconds: Some(1),
        ..pop(name, batch)
    };
    let to = match rng.random_range(0..4) {
        0 => SeekTo::Beginning,
        1 => SeekTo::End,
        2 => SeekTo::Offset(rng.random_range(-1..50)),
        _ => SeekTo::At(Timestamp(0)),
    };
    match rng.random_range(0..20) {
        0..5 => {
            let mut items: Vec<_> = PARTITIONS.iter().map(|p| item(name, p, &key)).collect();
            if rng.random_bool(0.5) {
                items.reverse();
            }
            broker.push(T, items, None).await;
        }
        5..10 => {
            let answer = refused(broker.pop(T, everywhere(40)).await)?;
            let status = *[AckStatus::Completed, AckStatus::Failed, AckStatus::Dlq, AckStatus::Retry]
                .choose(rng)
                .unwrap_or(&AckStatus::Completed);
            if let Some(answer) = answer {
                let mut items: Vec<AckItem> = acks(&answer, status);
                items.reverse();
                broker.ack(T, who.clone(), items).await;
            }
        }
        10..12 => {
            let request = PopRequest { group: who.clone(), ..pop_partition(name, lane, 5) };
            if let Some(answer) = refused(broker.pop(T, request).await)? {
                let mut operations: Vec<TxnOperation> = acks(&answer, AckStatus::Completed)
                    .into_iter()
                    .filter_map(|ack| {
                        Some(TxnOperation::Ack {
                            group: who.clone(),
                            partition: ack.partition?.ok()?,
                            transaction_id: ack.transaction_id,
                            status: ack.status,
                            lease: ack.lease,
                            error: None,
                        })
                    })
                    .collect();
                operations.extend(QUEUES.iter().map(|q| TxnOperation::Push(item(q, lane, &key))));
                refused(
                    broker.transaction(T, TxnRequest { operations, required_leases: Vec::new() }, None).await,
                )?;
            }
        }
        12..15 => drop(refused(broker.seek(T, &queue(name), &who, to).await)?),
        15 => {
            let lane = queen_tests::build::partition(lane);
            refused(broker.seek_partition(T, &queue(name), &lane, &who, to).await)?;
        }
        16 => drop(refused(broker.delete_group(T, &who, None, rng.random()).await)?),
        17 => drop(refused(broker.delete_group(T, &who, Some(&queue(name)), rng.random()).await)?),
        18 => {
            let filter = queen_core::api::DlqFilter { limit: 5, ..Default::default() };
            for letter in
                refused(broker.dead_letters(T, filter).await)?.map(|page| page.records).unwrap_or_default()
            {
                refused(broker.replay(T, &ReplayTarget::Record(letter.id)).await)?;
            }
        }
        _ if rng.random_bool(0.3) => drop(refused(broker.delete_queue(T, &queue(name)).await)?),
        _ => drop(refused(broker.purge_dead_letters(T, &queue(name), None).await)?),
    }
    Ok(())
}

/// A deadlock fails the test; that something vanished under an operation does not.
fn refused<R>(result: Result<R, Error>) -> anyhow::Result<Option<R>> {
    match result {
        Err(Error::Statement { sqlstate: Some(code), message, .. }) if code == "40P01" => {
            anyhow::bail!("{message}")
        }
        Err(error @ Error::Pool(_)) => Err(error.into()),
        result => Ok(result.ok()),
    }
}
