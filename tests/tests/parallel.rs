//! Many callers at once, through two brokers of one database.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use queen_core::api::{PopRequest, TxnOperation, TxnOutcome, TxnRequest};
use queen_core::{Broker, BrokerOptions, Error};
use queen_tests::build::{acks, group, item, keys, pop, queue};
use queen_tests::scene::World;
use queen_tests::tables::check_tables;
use queen_types::{AckStatus, Group, MessageId, PushStatus, StartPoint, TenantId};
use rand::Rng;
use record::Recorded;

const T: TenantId = TenantId::DEFAULT;

mod record {
    use std::collections::HashMap;
    use std::sync::Mutex;

    /// Deliveries in the order in which their pops were answered, per partition.
    #[derive(Default)]
    pub(crate) struct Recorded(Mutex<HashMap<String, Vec<u64>>>);

    impl Recorded {
        pub(crate) fn add(&self, partition: &str, numbers: impl Iterator<Item = u64>) {
            let mut all = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            all.entry(partition.to_owned()).or_default().extend(numbers);
        }

        pub(crate) fn take(&self) -> HashMap<String, Vec<u64>> {
            std::mem::take(&mut *self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
        }
    }
}

fn number(key: &str) -> u64 {
    key.rsplit('-').next().and_then(|n| n.parse().ok()).unwrap_or(u64::MAX)
}

/// I-1, I-2, I-6, I-11, I-12, I-13, I-15: pushers and consumers through both brokers; every partition delivers 0, 1, 2 …
/// once each, and its segments never go back in time, although one of them carries a time from the future. Breaks when
/// two brokers allocate the same offsets, or a lease is given twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i06_i11_i13_order_and_completeness_across_brokers() -> anyhow::Result<()> {
    const PARTITIONS: u64 = 12;
    const EACH: u64 = 150;
    let world = World::start().await?;
    let recorded = Arc::new(Recorded::default());
    world.brokers[0]
        .push(T, (0..PARTITIONS).map(|p| item("q", &p.to_string(), &format!("{p}-0"))).collect(), None)
        .await;
    world
        .client
        .execute(
            "UPDATE queen.log_segments SET created_at = now() + interval '1 hour' WHERE base_offset = 0",
            &[],
        )
        .await?;
    let done = Arc::new(AtomicBool::new(false));
    let mut consumers = Vec::new();
    for c in 0..8 {
        let (broker, recorded, done) = (world.brokers[c % 2].clone(), recorded.clone(), done.clone());
        consumers.push(tokio::spawn(async move {
            while !done.load(Ordering::Relaxed) {
                let wait = Some(Duration::from_millis(200));
                let answer = broker.pop(T, PopRequest { partitions: Some(3), wait, ..pop("q", 20) }).await?;
                for batch in &answer.partitions {
                    let numbers = batch.messages.iter().map(|(_, m)| number(&m.transaction_id));
                    recorded.add(batch.partition.as_str(), numbers);
                }
                let results = broker.ack(T, Group::queue_mode(), acks(&answer, AckStatus::Completed)).await;
                ensure!(results.iter().all(|r| r.success), "{results:?}");
            }
            anyhow::Ok(())
        }));
    }
    let mut producers = Vec::new();
    for p in 0..PARTITIONS {
        let brokers = world.brokers.clone();
        producers.push(tokio::spawn(async move {
            let mut next = 1;
            while next < EACH {
                let end = (next + 5).min(EACH);
                let items = (next..end).map(|n| item("q", &p.to_string(), &format!("{p}-{n}"))).collect();
                // I-21: alternating brokers, one answer after the other
                let results = brokers[(next % 2) as usize].push(T, items, None).await;
                ensure!(results.iter().all(|r| r.status == PushStatus::Queued), "{results:?}");
                next = end;
            }
            Ok(())
        }));
    }
    for producer in producers {
        producer.await??;
    }
    let sum = "SELECT COALESCE(sum(committed + 1), 0)::int8 FROM queen.log_consumers";
    let start = Instant::now();
    while world.client.query_one(sum, &[]).await?.get::<_, i64>(0) < (PARTITIONS * EACH) as i64 {
        ensure!(start.elapsed() < Duration::from_secs(15), "the consumers do not finish");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    done.store(true, Ordering::Relaxed);
    for consumer in consumers {
        consumer.await??;
    }
    for (partition, numbers) in recorded.take() {
        ensure!(numbers == (0..EACH).collect::<Vec<_>>(), "partition {partition}: {numbers:?}");
    }
    let back: i64 = world
        .client
        .query_one(
            "SELECT count(*) FROM (SELECT created_at < lag(created_at) OVER (PARTITION BY partition_id ORDER BY base_offset)
                 AS back FROM queen.log_segments) s WHERE s.back",
            &[],
        )
        .await?
        .get(0);
    ensure!(back == 0, "{back} segments are older than the one before");
    check_tables(&world.client).await?;
    world.stop().await;
    Ok(())
}

/// I-16: one id pushed by many at once through both brokers is stored once, and all others are told its message id.
/// Breaks when the probe can miss what a competitor commits meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i16_one_id_pushed_by_many_is_stored_once() -> anyhow::Result<()> {
    let world = World::start().await?;
    for round in 0..20 {
        let key = format!("key-{round}");
        let pushes: Vec<_> = (0..12)
            .map(|i| {
                let (broker, key) = (world.brokers[i % 2].clone(), key.clone());
                tokio::spawn(async move {
                    broker
                        .push(T, vec![item("q", "p", &key), item("q", "p", &format!("{key}-{i}"))], None)
                        .await
                })
            })
            .collect();
        let mut ids: HashSet<MessageId> = HashSet::new();
        let mut queued = 0;
        for push in pushes {
            let results = push.await?;
            ensure!(results[1].status == PushStatus::Queued, "{results:?}");
            queued += u32::from(results[0].status == PushStatus::Queued);
            ids.insert(results[0].message_id);
        }
        ensure!(queued == 1 && ids.len() == 1, "round {round}: {queued} queued, ids {ids:?}");
    }
    check_tables(&world.client).await?;
    world.stop().await;
    Ok(())
}

/// I-31 without seeks and cleanup: transactions, pushes, acks, pops and deletions of queues over the same few partitions
/// never deadlock. Breaks when an actor takes its locks in another order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i31_nothing_deadlocks() -> anyhow::Result<()> {
    let world = World::start().await?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut workers = Vec::new();
    for w in 0..8 {
        let (broker, stop) = (world.brokers[w % 2].clone(), stop.clone());
        workers.push(tokio::spawn(async move {
            let mut n = 0u64;
            while !stop.load(Ordering::Relaxed) {
                n += 1;
                one_random_operation(&broker, w, n).await?;
            }
            anyhow::Ok(n)
        }));
    }
    tokio::time::sleep(Duration::from_secs(6)).await;
    stop.store(true, Ordering::Relaxed);
    let mut operations = 0;
    for worker in workers {
        operations += worker.await??;
    }
    // Sessions report up to a second late.
    tokio::time::sleep(Duration::from_millis(1200)).await;
    let deadlocks: i64 = world
        .client
        .query_one("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()", &[])
        .await?
        .get(0);
    ensure!(deadlocks == 0 && operations > 100, "{deadlocks} deadlocks in {operations} operations");
    check_tables(&world.client).await?;
    world.stop().await;
    Ok(())
}

async fn one_random_operation(broker: &Broker, worker: usize, n: u64) -> anyhow::Result<()> {
    let deadlock = |sqlstate: Option<&str>| sqlstate == Some("40P01");
    let (kind, a, b) = {
        let mut rng = rand::rng();
        (rng.random_range(0..100), rng.random_range(0..3), rng.random_range(0..4))
    };
    let (q, p) = (format!("q{a}"), b.to_string());
    let key = format!("{worker}-{n}");
    match kind {
        0..2 => {
            let deleted = broker.delete_queue(T, &queue(&q)).await;
            ensure!(
                !matches!(&deleted, Err(Error::Statement { sqlstate, .. }) if deadlock(sqlstate.as_deref()))
            );
        }
        2..40 => {
            let items = (0..4)
                .map(|i| item(&format!("q{}", (a + i) % 3), &((b + i) % 4).to_string(), &key))
                .collect();
            for result in broker.push(T, items, None).await {
                ensure!(!result.error.as_deref().unwrap_or("").contains("40P01"), "{result:?}");
            }
        }
        _ => {
            let popped =
                broker.pop(T, PopRequest { partitions: Some(3), lease_seconds: Some(1), ..pop(&q, 6) }).await;
            let answer = match popped {
                Ok(answer) => answer,
                Err(Error::Statement { sqlstate, message, .. }) => {
                    ensure!(!deadlock(sqlstate.as_deref()), "{message}");
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            };
            if kind < 70 {
                for result in broker.ack(T, Group::queue_mode(), acks(&answer, AckStatus::Completed)).await {
                    ensure!(!result.error.as_deref().unwrap_or("").contains("40P01"), "{result:?}");
                }
                return Ok(());
            }
            let mut operations: Vec<TxnOperation> = answer
                .partitions
                .iter()
                .flat_map(|batch| batch.messages.iter().map(move |(_, m)| (batch.partition_id, m)))
                .map(|(partition, m)| TxnOperation::Ack {
                    group: Group::queue_mode(),
                    partition,
                    transaction_id: m.transaction_id.to_string(),
                    status: AckStatus::Completed,
                    lease: None,
                    error: None,
                })
                .collect();
            operations.push(TxnOperation::Push(item(&format!("q{}", (a + 1) % 3), &p, &key)));
            operations.push(TxnOperation::Push(item(&q, &((b + 2) % 4).to_string(), &key)));
            let required_leases = answer.lease.clone().into_iter().collect();
            let outcome = broker.transaction(T, TxnRequest { operations, required_leases }, None).await?;
            if let TxnOutcome::RolledBack { error, .. } = outcome {
                ensure!(!error.contains("40P01"), "{error}");
            }
        }
    }
    Ok(())
}

/// I-36: a `new` group gets every message whose push began after its first pop was answered, also in partitions born
/// later; an `all` group gets everything. Breaks when the seeding of cursors can pass a message that commits around it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i36_a_new_group_misses_nothing_pushed_after_it_came() -> anyhow::Result<()> {
    let world = World::start().await?;
    let (registered, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let mut producers = Vec::new();
    for w in 0..4 {
        let (broker, registered, stop) = (world.brokers[w % 2].clone(), registered.clone(), stop.clone());
        producers.push(tokio::spawn(async move {
            let (mut all, mut after) = (Vec::new(), Vec::new());
            for n in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let late = registered.load(Ordering::SeqCst);
                // Every few pushes a partition that was not there before.
                let partition = if n % 5 == 0 { format!("{w}-{n}") } else { format!("{}", n % 3) };
                let key = format!("{w}-{n}");
                let results = broker.push(T, vec![item("q", &partition, &key)], None).await;
                ensure!(results[0].status == PushStatus::Queued, "{results:?}");
                if late {
                    after.push(key.clone());
                }
                all.push(key);
            }
            Ok((all, after))
        }));
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (fresh, whole) = (group("fresh"), group("whole"));
    let first = PopRequest { group: fresh.clone(), start: Some(StartPoint::New), ..pop("q", 1000) };
    // It may take what came in between already; its partition must not stay under the lease.
    let taken = world.brokers[0].pop(T, first.clone()).await?;
    registered.store(true, Ordering::SeqCst);
    let mut got: Vec<String> = keys(&taken);
    world.brokers[0].ack(T, fresh, acks(&taken, AckStatus::Completed)).await;
    tokio::time::sleep(Duration::from_millis(1200)).await;
    stop.store(true, Ordering::Relaxed);
    let (mut all, mut after) = (Vec::new(), Vec::new());
    for producer in producers {
        let (mine, mine_after) = producer.await??;
        all.extend(mine);
        after.extend(mine_after);
    }
    got.extend(drain(&world.brokers[1], PopRequest { partitions: None, ..first }).await?);
    let seen: HashSet<&String> = got.iter().collect();
    let missed: Vec<_> = after.iter().filter(|key| !seen.contains(key)).collect();
    ensure!(!after.is_empty() && missed.is_empty(), "{} of {} missed: {missed:?}", missed.len(), after.len());
    let everything = PopRequest { group: whole, partitions: None, ..pop("q", 1000) };
    let mut got = drain(&world.brokers[0], everything).await?;
    got.sort();
    all.sort();
    ensure!(got == all, "an `all` group got {} of {}", got.len(), all.len());
    world.stop().await;
    Ok(())
}

async fn drain(broker: &Broker, request: PopRequest) -> anyhow::Result<Vec<String>> {
    let mut all = Vec::new();
    loop {
        let answer = broker.pop(T, request.clone()).await?;
        if answer.is_empty() {
            return Ok(all);
        }
        all.extend(keys(&answer));
        broker.ack(T, request.group.clone(), acks(&answer, AckStatus::Completed)).await;
    }
}

/// I-37: 200 first pops at once of a queue of 1,000 partitions: one registration, every cursor seeded, nobody waits long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i37_a_crowd_of_first_pops_agrees_quickly() -> anyhow::Result<()> {
    let world = World::start().await?;
    let items = (0..1000).map(|p| item("q", &p.to_string(), "k")).collect();
    ensure!(world.brokers[0].push(T, items, None).await.iter().all(|r| r.status == PushStatus::Queued));
    let pops: Vec<_> = (0..200)
        .map(|i| {
            let broker = world.brokers[i % 2].clone();
            let request = PopRequest { group: group("crowd"), start: Some(StartPoint::New), ..pop("q", 1) };
            tokio::spawn(async move {
                let start = Instant::now();
                (broker.pop(T, request).await, start.elapsed())
            })
        })
        .collect();
    for pop in pops {
        let (answer, took) = pop.await?;
        ensure!(answer?.is_empty() && took < Duration::from_secs(5), "took {took:?}");
    }
    let count =
        async |sql: &str| -> anyhow::Result<i64> { Ok(world.client.query_one(sql, &[]).await?.get(0)) };
    ensure!(count("SELECT count(*) FROM queen.consumer_groups_metadata").await? == 1);
    ensure!(count("SELECT count(*) FROM queen.log_consumers WHERE committed = 0").await? == 1000);
    world.stop().await;
    Ok(())
}

/// I-38: a pop of a known group never waits for a lock: with a lock timeout of 1 ms it succeeds or skips while cursors,
/// partitions and queues are locked by others.
#[tokio::test]
async fn i38_a_pop_never_waits_for_a_lock() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let client = db.connect().await?;
    client.batch_execute(&format!("ALTER DATABASE {} SET lock_timeout = '1ms'", db.name())).await?;
    let broker = Broker::start(BrokerOptions { pg: db.options(), ..queen_tests::options() }).await?;
    let items =
        (0..6).flat_map(|p| (0..3).map(move |n| item("q", &p.to_string(), &format!("{n}")))).collect();
    broker.push(T, items, None).await;
    // Cursors exist for half of the partitions.
    let first = broker.pop(T, PopRequest { partitions: Some(3), ..pop("q", 3) }).await?;
    broker.ack(T, Group::queue_mode(), acks(&first, AckStatus::Retry)).await;
    let mut locker = db.connect().await?;
    let locks = locker.transaction().await?;
    locks
        .batch_execute(
            "SELECT FROM queen.queues FOR NO KEY UPDATE; SELECT FROM queen.log_partitions FOR NO KEY UPDATE;
             SELECT FROM queen.log_consumers FOR UPDATE",
        )
        .await?;
    let mut seen: HashMap<String, u64> = HashMap::new();
    for _ in 0..8 {
        let start = Instant::now();
        let answer = broker
            .pop(T, PopRequest { partitions: Some(2), ..pop("q", 4) })
            .await
            .context("a pop under locks")?;
        // The lock timeout is the judge; a busy machine needs its time.
        ensure!(start.elapsed() < Duration::from_secs(5), "waited {:?}", start.elapsed());
        for batch in &answer.partitions {
            *seen.entry(batch.partition.to_string()).or_default() += 1;
        }
    }
    let locked: HashSet<String> = first.partitions.iter().map(|p| p.partition.to_string()).collect();
    ensure!(
        !seen.is_empty() && seen.keys().all(|p| !locked.contains(p)),
        "{seen:?} although {locked:?} are locked"
    );
    locks.rollback().await?;
    broker.shutdown().await;
    Ok(())
}

/// I-45: the database's time zone and collation change no answer. Breaks when a statement renders or compares a time, or
/// sorts a name, by settings of the database.
#[tokio::test]
async fn i45_settings_of_the_database_change_no_answer() -> anyhow::Result<()> {
    let mut answers = Vec::new();
    for zone in ["UTC", "Asia/Tokyo", "America/New_York"] {
        let db = queen_testkit::db().await?;
        let client = db.connect().await?;
        client
            .batch_execute(&format!(
                "ALTER DATABASE {0} SET timezone = '{zone}'; ALTER DATABASE {0} SET datestyle = 'SQL, DMY'",
                db.name()
            ))
            .await?;
        let broker = Broker::start(BrokerOptions { pg: db.options(), ..queen_tests::options() }).await?;
        let names = ["b", "A", "ä", "a", "Z"];
        broker.push(T, names.iter().map(|p| item("q", p, "k")).collect(), None).await;
        let answer = broker.pop(T, PopRequest { partitions: None, ..pop("q", 9) }).await?;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_micros() as i64;
        for (created, _) in answer.partitions.iter().flat_map(|p| &p.messages) {
            ensure!((now - created.0).abs() < 5_000_000, "{zone}: {created:?} is not now");
        }
        let lease = answer.lease.clone().context("a lease")?;
        let extended = broker.extend_lease(T, &lease, 600).await?;
        let left = extended.expires_at.context("an expiry")?.0 - now;
        ensure!((590_000_000..610_000_000).contains(&left), "{zone}: {left} µs left");
        let depth = broker.depth(T, &queue("q"), None).await?.context("a depth")?;
        let order: Vec<String> = depth.partitions.iter().map(|(name, ..)| name.to_string()).collect();
        let mut listed = order.clone();
        listed.sort();
        answers.push((
            order,
            depth.partitions.iter().map(|(_, pending, _)| *pending).collect::<Vec<_>>(),
            listed,
        ));
        broker.shutdown().await;
    }
    ensure!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
    ensure!(
        answers[0].0 == answers[0].2,
        "partitions are listed by the bytes of their names: {:?}",
        answers[0].0
    );
    Ok(())
}

/// I-43: brokers that boot on an empty database at the same time all serve, and one that boots under load disturbs nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i43_brokers_boot_together_and_under_load() -> anyhow::Result<()> {
    let db = queen_testkit::empty_db().await?;
    let start = || Broker::start(BrokerOptions { pg: db.options(), ..queen_tests::options() });
    let (one, two) = tokio::join!(start(), start());
    let (one, two) = (one?, two?);
    let stop = Arc::new(AtomicBool::new(false));
    let load = {
        let (one, two, stop) = (one.clone(), two.clone(), stop.clone());
        tokio::spawn(async move {
            for n in 0.. {
                if stop.load(Ordering::Relaxed) {
                    return anyhow::Ok(n);
                }
                let broker = if n % 2 == 0 { &one } else { &two };
                let results =
                    broker.push(T, vec![item("q", &(n % 5).to_string(), &n.to_string())], None).await;
                ensure!(results[0].status == PushStatus::Queued, "{results:?}");
                broker.pop(T, PopRequest { auto_ack: true, ..pop("q", 5) }).await?;
            }
            Ok(0)
        })
    };
    for _ in 0..3 {
        start().await?.shutdown().await;
    }
    stop.store(true, Ordering::Relaxed);
    ensure!(load.await?? > 0);
    check_tables(&db.connect().await?).await?;
    one.shutdown().await;
    two.shutdown().await;
    Ok(())
}
