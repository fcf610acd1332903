//! Invariants of cursors and leases.

use std::time::Duration;

use anyhow::{Context, ensure};
use queen_core::api::{AckItem, PopAnswer, PopRequest};
use queen_tests::build::{ack, acks, item, keys, pop, pop_partition};
use queen_tests::scene::{TENANT, World};
use queen_tests::seed::Runs;
use queen_types::{AckStatus, Group, LeaseId, OptionsEdit, PartitionId};
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use tokio_postgres::Row;

const SHORT: Duration = Duration::from_secs(1);
const STATUSES: [AckStatus; 4] = [AckStatus::Completed, AckStatus::Failed, AckStatus::Retry, AckStatus::Dlq];

async fn cursors(world: &World) -> anyhow::Result<Vec<Row>> {
    let sql = "SELECT c.*, c.partition_id::text || ' ' || c.consumer_group AS place,
                      GREATEST(p.last_offset, (SELECT max(s.end_offset) FROM queen.log_segments s
                                               WHERE s.partition_id = p.id)) AS log_end,
                      (extract(epoch FROM c.lease_expires_at) * 1000000)::int8 AS expires
               FROM queen.log_consumers c JOIN queen.log_partitions p ON p.id = c.partition_id
               ORDER BY c.partition_id, c.consumer_group";
    Ok(world.client.query(sql, &[]).await?)
}

async fn expire(world: &World) -> anyhow::Result<()> {
    let sql = "UPDATE queen.log_consumers SET lease_expires_at = clock_timestamp() - interval '1 s'
               WHERE lease_expires_at IS NOT NULL";
    world.client.execute(sql, &[]).await?;
    Ok(())
}

async fn configure(world: &World, queue: &str, edit: OptionsEdit) -> anyhow::Result<()> {
    let queue = queen_tests::build::queue(queue);
    let request = queen_core::api::ConfigureRequest { queue, replace: false, edit };
    world.brokers[0].configure(TENANT, request).await?;
    Ok(())
}

/// Claims and acks without any plan: wrong leases, keys that are far ahead, done or unknown, and two lease ids in one
/// call.
struct Chaos<'w> {
    world: &'w World,
    rng: StdRng,
    queue: String,
    answers: Vec<PopAnswer>,
}

impl Chaos<'_> {
    async fn step(&mut self) -> anyhow::Result<()> {
        let broker = &self.world.brokers[self.rng.random_range(0..2)];
        match self.rng.random_range(0..10) {
            0..3 => {
                let name = format!("p{}", self.rng.random_range(0..2));
                let keys =
                    (0..self.rng.random_range(1..5)).map(|_| format!("k{}", self.rng.random_range(0..90)));
                let items = keys.map(|key| item(&self.queue, &name, &key)).collect();
                broker.push(TENANT, items, None).await;
            }
            3..6 => {
                let request = PopRequest {
                    partitions: None,
                    auto_ack: self.rng.random_bool(0.2),
                    ..pop(&self.queue, self.rng.random_range(1..6))
                };
                self.answers.push(broker.pop(TENANT, request).await?);
            }
            6 => expire(self.world).await?,
            _ => {
                let items = self.items();
                broker.ack(TENANT, Group::queue_mode(), items).await;
            }
        }
        Ok(())
    }

    fn items(&mut self) -> Vec<AckItem> {
        let places: Vec<PartitionId> =
            self.answers.iter().flat_map(|a| a.partitions.iter().map(|p| p.partition_id)).collect();
        let known: Vec<(LeaseId, String)> = self
            .answers
            .iter()
            .flat_map(|a| keys(a).into_iter().filter_map(|key| Some((a.lease.clone()?, key))))
            .collect();
        let mut items = Vec::new();
        for _ in 0..self.rng.random_range(1..8) {
            let Some(place) = places.choose(&mut self.rng) else { break };
            let (lease, key) = match known.choose(&mut self.rng) {
                Some((lease, key)) => (self.rng.random_bool(0.6).then_some(lease), key.clone()),
                None => (None, String::new()),
            };
            let key =
                if self.rng.random_bool(0.7) { key } else { format!("k{}", self.rng.random_range(0..90)) };
            items.push(ack(*place, lease, &key, STATUSES[self.rng.random_range(0..4)]));
        }
        items
    }
}

/// Broken by an ack that trusts an offset beyond the log, by a claim that leases messages which are not there, by a
/// lease of which only one half is written or cleared, or by anything but a seek that sets a cursor back.
#[tokio::test]
async fn i08_i09_i10_cursors_stay_in_the_log_and_never_go_back_and_leases_are_whole() -> anyhow::Result<()> {
    let world = World::start().await?;
    let mut runs = Runs::of(SHORT)?;
    while let Some(run) = runs.next_run() {
        let queue = format!("q{}n{}", run.seed, run.number);
        configure(&world, &queue, OptionsEdit { retry_limit: Some(1), ..OptionsEdit::default() }).await?;
        let mut chaos = Chaos { world: &world, rng: run.rng.clone(), queue, answers: Vec::new() };
        let mut before = std::collections::HashMap::new();
        for step in 0..80 {
            run.explain(chaos.step().await)?;
            for row in cursors(&world).await? {
                let place: String = row.get("place");
                let (committed, log_end): (i64, i64) = (row.get("committed"), row.get("log_end"));
                let batch_end: Option<i64> = row.get("batch_end");
                let check = || {
                    ensure!(
                        committed >= -1 && committed <= log_end,
                        "I-8: committed {committed} of {log_end}"
                    );
                    ensure!(
                        batch_end.is_none_or(|end| committed <= end && end <= log_end),
                        "I-8: committed {committed}, leased to {batch_end:?}, of {log_end}"
                    );
                    let before = before.get(&place).copied().unwrap_or(-1);
                    ensure!(committed >= before, "I-9: {before} became {committed}");
                    let worker: Option<&str> = row.get("worker_id");
                    let expires: Option<i64> = row.get("expires");
                    ensure!(worker.is_some() == batch_end.is_some(), "I-10: {worker:?} up to {batch_end:?}");
                    ensure!(worker.is_some() == expires.is_some(), "I-10: {worker:?} until {expires:?}");
                    Ok(())
                };
                run.explain(check().with_context(|| format!("{place} after step {step}")))?;
                before.insert(place, committed);
            }
        }
    }
    world.stop().await;
    Ok(())
}

/// Broken by a call whose items are resolved once although its first ones move the cursor: a `dlq` without a lease id,
/// of a message that the same call completed under its lease, sets the cursor back to it.
#[tokio::test]
async fn i09_two_lease_ids_in_one_call_do_not_set_the_cursor_back() -> anyhow::Result<()> {
    let world = World::start().await?;
    let broker = &world.brokers[0];
    for status in [AckStatus::Dlq, AckStatus::Failed, AckStatus::Retry] {
        let queue = format!("q-{status:?}");
        broker.push(TENANT, (0..6).map(|i| item(&queue, "p", &format!("k{i}"))).collect(), None).await;
        let answer = broker.pop(TENANT, pop(&queue, 6)).await?;
        let (place, lease) = (answer.partitions[0].partition_id, answer.lease.as_ref());
        let items = vec![ack(place, lease, "k4", AckStatus::Completed), ack(place, None, "k2", status)];
        let answers = broker.ack(TENANT, Group::queue_mode(), items).await;
        assert!(answers[0].success && !answers[0].lease_released, "{answers:?}");
        let refused = answers[1].error.as_deref().unwrap_or_default();
        assert!(!answers[1].success && refused.starts_with("already committed"), "{answers:?}");
        let sql =
            "SELECT c.committed, c.batch_retry_count FROM queen.log_consumers c WHERE c.partition_id = $1";
        let row = world.client.query_one(sql, &[&place.0]).await?;
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i32>(1)), (4, 0), "{status:?}");
    }
    world.stop().await;
    Ok(())
}

/// Broken by a refused or empty ack that ends the delay which a failed one asked for: then a nack loops at full speed.
#[tokio::test]
async fn i25_an_ack_that_changes_nothing_leaves_a_retry_delay_alone() -> anyhow::Result<()> {
    let world = World::start().await?;
    let broker = &world.brokers[0];
    let edit = OptionsEdit {
        retry_backoff: Some(queen_types::RetryBackoff::Fixed),
        retry_delay: Some(3_600_000),
        retry_delay_max: Some(3_600_000),
        ..OptionsEdit::default()
    };
    configure(&world, "q", edit).await?;
    broker.push(TENANT, vec![item("q", "p", "a"), item("q", "p", "b")], None).await;
    let answer = broker.pop(TENANT, pop("q", 2)).await?;
    let failed = broker.ack(TENANT, Group::queue_mode(), acks(&answer, AckStatus::Failed)).await;
    assert!(failed.iter().all(|a| a.success && a.lease_released), "{failed:?}");
    let place = answer.partitions[0].partition_id;
    for stale in [
        ack(place, answer.lease.as_ref(), "a", AckStatus::Completed),
        ack(place, None, "a", AckStatus::Failed),
        ack(place, None, "unknown", AckStatus::Completed),
    ] {
        let answers = broker.ack(TENANT, Group::queue_mode(), vec![stale]).await;
        assert!(!answers[0].success, "{answers:?}");
        assert!(broker.pop(TENANT, pop("q", 2)).await?.is_empty(), "after {answers:?}");
    }
    world.stop().await;
    Ok(())
}

/// Broken by a budget that the end of a lease or a `retry` is charged to, that outlives a completed batch or a dead
/// letter, that one message spends for another, or that grows beyond the queue's limit.
#[tokio::test]
async fn i26_only_failed_charges_the_budget_and_success_or_filing_clears_it() -> anyhow::Result<()> {
    let world = World::start().await?;
    let broker = &world.brokers[0];
    let mut runs = Runs::of(SHORT)?;
    while let Some(mut run) = runs.next_run() {
        let queue = format!("q{}n{}", run.seed, run.number);
        let limit = run.rng.random_range(0..4);
        configure(&world, &queue, OptionsEdit { retry_limit: Some(limit), ..OptionsEdit::default() }).await?;
        let mut spent: Option<(String, i32)> = None;
        for step in 0..30 {
            let fresh = format!("k{step}");
            broker.push(TENANT, vec![item(&queue, "p", &fresh)], None).await;
            let answer = broker.pop(TENANT, pop_partition(&queue, "p", run.rng.random_range(1..4))).await?;
            let (all, place) = (keys(&answer), answer.partitions[0].partition_id);
            let head = ack(place, answer.lease.as_ref(), &all[0], AckStatus::Failed);
            let used = spent.take().filter(|(key, _)| *key == all[0]).map_or(0, |(_, used)| used);
            match run.rng.random_range(0..10) {
                0..5 => {
                    let answers = broker.ack(TENANT, Group::queue_mode(), vec![head]).await;
                    assert!(answers[0].success, "{answers:?}");
                    assert_eq!(answers[0].dlq, used >= limit, "{used} of {limit} used, seed {}", run.seed);
                    spent = (used < limit).then(|| (all[0].clone(), used + 1));
                }
                5 => {
                    broker.ack(TENANT, Group::queue_mode(), acks(&answer, AckStatus::Retry)).await;
                    spent = (used > 0).then(|| (all[0].clone(), used));
                }
                6 => {
                    expire(&world).await?;
                    spent = (used > 0).then(|| (all[0].clone(), used));
                }
                7 => {
                    let answers = broker
                        .ack(TENANT, Group::queue_mode(), vec![AckItem { status: AckStatus::Dlq, ..head }])
                        .await;
                    assert!(answers[0].dlq, "{answers:?}");
                }
                _ => {
                    let answers =
                        broker.ack(TENANT, Group::queue_mode(), acks(&answer, AckStatus::Completed)).await;
                    assert!(answers.iter().all(|a| a.success && a.lease_released), "{answers:?}");
                }
            }
            let sql = "SELECT batch_retry_count FROM queen.log_consumers WHERE partition_id = $1";
            let count: i32 = world.client.query_one(sql, &[&place.0]).await?.get(0);
            assert_eq!(count, spent.as_ref().map_or(0, |(_, used)| *used), "step {step}, seed {}", run.seed);
            assert!(count <= limit, "{count} of {limit}, seed {}", run.seed);
        }
    }
    world.stop().await;
    Ok(())
}

/// Broken by an extension that sets the expiry instead of raising it, that revives an expired lease, that touches the
/// lease of somebody else, or that reports another expiry than the earliest of the renewed ones.
#[tokio::test]
async fn i28_an_extension_never_shortens_a_lease() -> anyhow::Result<()> {
    let world = World::start().await?;
    let mut runs = Runs::of(SHORT)?;
    while let Some(mut run) = runs.next_run() {
        let queue = format!("q{}n{}", run.seed, run.number);
        let names: Vec<String> = (0..4).map(|i| format!("p{i}")).collect();
        world.brokers[0].push(TENANT, names.iter().map(|p| item(&queue, p, "k")).collect(), None).await;
        let mut leases = Vec::new();
        for partitions in [2, 1, 1] {
            let request = PopRequest {
                partitions: Some(partitions),
                lease_seconds: Some(run.rng.random_range(1..600)),
                ..pop(&queue, 10)
            };
            leases.extend(world.brokers[0].pop(TENANT, request).await?.lease);
        }
        assert_eq!(leases.len(), 3);
        // The third one ends; its row stays.
        let sql = "UPDATE queen.log_consumers SET lease_expires_at = clock_timestamp() - interval '1 s' WHERE worker_id = $1";
        world.client.execute(sql, &[&leases[2].as_str()]).await?;
        leases.shuffle(&mut run.rng);
        for _ in 0..12 {
            let lease = leases.choose(&mut run.rng).context("three leases")?;
            let seconds = run.rng.random_range(1..900);
            let before = cursors(&world).await?;
            let broker = &world.brokers[run.rng.random_range(0..2)];
            let answer = broker.extend_lease(TENANT, lease, seconds).await?;
            let now: i64 = world
                .client
                .query_one("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8", &[])
                .await?
                .get(0);
            let mut renewed = Vec::new();
            for (old, new) in before.iter().zip(cursors(&world).await?) {
                let expiry = |row: &Row| row.get::<_, Option<i64>>("expires");
                let mine = new.get::<_, Option<&str>>("worker_id") == Some(lease.as_str());
                let live = expiry(old).is_some_and(|at| at > now);
                if mine && live {
                    assert!(expiry(&new) >= expiry(old), "shortened; seed {}", run.seed);
                    let least = now + (seconds - 1) * 1_000_000;
                    assert!(expiry(&new).is_some_and(|at| at >= least), "not extended; seed {}", run.seed);
                    renewed.extend(expiry(&new));
                } else {
                    assert_eq!(expiry(&new), expiry(old), "not its lease, or over; seed {}", run.seed);
                }
            }
            assert_eq!(answer.renewed as usize, renewed.len(), "seed {}", run.seed);
            assert_eq!(answer.expires_at.map(|at| at.0), renewed.into_iter().min(), "seed {}", run.seed);
        }
    }
    world.stop().await;
    Ok(())
}
