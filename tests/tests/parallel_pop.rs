//! Pops through two brokers of one database at the same time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use queen_core::api::{PopRequest, TxnOperation, TxnOutcome, TxnReason, TxnRequest};
use queen_core::{Broker, BrokerOptions};
use queen_tests::build::{acks, group, item, keys, pop, pop_partition};
use queen_tests::scene::{TENANT, World};
use queen_tests::seed::Runs;
use queen_tests::tables::check_tables;
use queen_types::{AckStatus, Group, MessageId, PartitionId, PushStatus, StartPoint};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

/// A lease as its holder knows it: it was surely held from `since` on, and surely until `until`.
#[derive(Debug)]
struct Hold {
    since: Instant,
    until: Instant,
    asked: Instant,
    messages: Vec<MessageId>,
    /// When the answer came that all of them are done.
    done: Option<Instant>,
}

type Holds = Arc<Mutex<BTreeMap<(PartitionId, Group), Vec<Hold>>>>;

/// Pops, and completes, gives back, or forgets what it is given, until the time is over.
async fn work(
    popper: Broker,
    acker: Broker,
    group: Group,
    holds: Holds,
    mut rng: StdRng,
    end: Instant,
) -> anyhow::Result<()> {
    while Instant::now() < end {
        let request = PopRequest {
            group: group.clone(),
            partitions: Some(rng.random_range(1..4)),
            lease_seconds: Some(1),
            wait: rng.random_bool(0.5).then_some(Duration::from_millis(300)),
            ..pop("q", rng.random_range(1..12))
        };
        let asked = Instant::now();
        let answer = popper.pop(TENANT, request).await?;
        let since = Instant::now();
        if rng.random_bool(0.2) {
            tokio::time::sleep(Duration::from_millis(rng.random_range(0..1300))).await;
        }
        let status = match rng.random_range(0..10) {
            0..2 => None,
            2..4 => Some(AckStatus::Retry),
            _ => Some(AckStatus::Completed),
        };
        let expiry = asked + Duration::from_secs(1);
        let until = if status.is_some() { expiry.min(Instant::now()) } else { expiry };
        let mut done = None;
        if let Some(status) = status {
            let results = acker.ack(TENANT, group.clone(), acks(&answer, status)).await;
            let all = results.iter().all(|r| r.success);
            done = (all && status == AckStatus::Completed).then(Instant::now);
        }
        let mut holds = holds.lock().expect("nobody panics while holding it");
        for batch in &answer.partitions {
            let messages = batch.messages.iter().map(|(_, m)| m.id).collect();
            let held = holds.entry((batch.partition_id, group.clone())).or_default();
            held.push(Hold { since, until, asked, messages, done });
        }
    }
    Ok(())
}

/// Broken by a claim that does not respect the lease of another claim, through the same broker or the other one, or by
/// a claim that goes back behind what its group has completed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn i11_a_partition_is_leased_to_one_consumer_of_a_group_at_a_time() -> anyhow::Result<()> {
    const PARTITIONS: usize = 10;
    const MESSAGES: usize = 800;
    let world = World::start().await?;
    let mut runs = Runs::of(Duration::ZERO)?;
    let run = runs.next_run().context("one run at least")?;
    for chunk in 0..8 {
        let items = (0..MESSAGES / 8)
            .flat_map(|i| (0..PARTITIONS).map(move |p| item("q", &format!("p{p}"), &format!("{chunk}.{i}"))))
            .collect();
        let results = world.brokers[0].push(TENANT, items, None).await;
        ensure!(results.iter().all(|r| r.status == PushStatus::Queued));
    }
    let holds = Holds::default();
    let end = Instant::now() + Duration::from_secs(6);
    let mut tasks = JoinSet::new();
    for n in 0..16 {
        let (popper, acker) = (world.brokers[n % 2].clone(), world.brokers[n / 2 % 2].clone());
        // Three quarters compete in one group, the others in a second one.
        let group = group(if n % 4 < 3 { "first" } else { "second" });
        let rng = StdRng::seed_from_u64(run.seed ^ ((n as u64) << 32));
        tasks.spawn(work(popper, acker, group, holds.clone(), rng, end));
    }
    while let Some(task) = tasks.join_next().await {
        run.explain(task.context("a task").and_then(|outcome| outcome))?;
    }
    let mut again = 0;
    for (place, holds) in holds.lock().expect("all tasks are done").iter_mut() {
        holds.sort_by_key(|hold| hold.since);
        let mut busy: Option<&Hold> = None;
        let mut delivered: HashSet<MessageId> = HashSet::new();
        let mut done: HashMap<MessageId, Instant> = HashMap::new();
        for hold in holds.iter() {
            if let Some(busy) = busy.filter(|busy| hold.since < busy.until && hold.since < hold.until) {
                panic!("{place:?} has two holders: {busy:?} and {hold:?}, seed {}", run.seed);
            }
            if busy.is_none_or(|busy| busy.until < hold.until) {
                busy = Some(hold);
            }
            again += hold.messages.iter().filter(|id| !delivered.insert(**id)).count();
            done.extend(hold.done.iter().flat_map(|at| hold.messages.iter().map(|id| (*id, *at))));
        }
        for hold in holds.iter() {
            let late = hold.messages.iter().filter(|id| done.get(*id).is_some_and(|at| *at < hold.asked));
            assert_eq!(late.count(), 0, "{place:?}: completed, yet delivered: {hold:?}, seed {}", run.seed);
        }
    }
    assert!(again > 20, "only {again} redeliveries: nothing was tried");
    check_tables(&world.client).await?;
    world.stop().await;
    Ok(())
}

/// Every value of every row that belongs to a message, a cursor or a dead letter.
async fn contents(world: &World) -> anyhow::Result<Vec<Option<String>>> {
    let sql = "SELECT (SELECT string_agg(t::text, ';') FROM queen.log_consumers t)
               UNION ALL SELECT (SELECT string_agg(t::text, ';') FROM queen.log_dlq t)
               UNION ALL SELECT (SELECT string_agg(t::text, ';') FROM queen.log_partitions t)
               UNION ALL SELECT (SELECT string_agg(t::text, ';' ORDER BY base_offset) FROM queen.log_segments t)";
    Ok(world.client.query(sql, &[]).await?.iter().map(|row| row.get(0)).collect())
}

/// Broken by anything that a holder whose lease ran out and went to another one can still do to the partition.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn i25_a_lease_that_went_to_another_does_nothing_any_more() -> anyhow::Result<()> {
    let world = World::start().await?;
    let (one, two) = (&world.brokers[0], &world.brokers[1]);
    let items = (0..6).map(|i| item("q", "p", &format!("k{i}"))).collect();
    one.push(TENANT, items, None).await;
    let request = pop_partition("q", "p", 4);
    let old = one.pop(TENANT, request.clone()).await?;
    world
        .client
        .execute("UPDATE queen.log_consumers SET lease_expires_at = clock_timestamp() - interval '1 s'", &[])
        .await?;
    let new = two.pop(TENANT, request).await?;
    assert_eq!(keys(&old), keys(&new), "the same messages again");
    assert_ne!(old.lease, new.lease);
    let before = contents(&world).await?;
    let stale = old.lease.clone().context("a lease")?;

    let mut tasks = JoinSet::new();
    for broker in [one, two] {
        for status in [AckStatus::Completed, AckStatus::Failed, AckStatus::Retry, AckStatus::Dlq] {
            let (broker, items) = (broker.clone(), acks(&old, status));
            tasks.spawn(async move {
                let results = broker.ack(TENANT, Group::queue_mode(), items).await;
                for result in &results {
                    ensure!(
                        !result.success && !result.dlq && !result.lease_released,
                        "{status:?}: {result:?}"
                    );
                }
                ensure!(results.len() == 4);
                Ok(())
            });
        }
        let (broker, lease) = (broker.clone(), stale.clone());
        let batch = old.partitions.first().context("a batch")?;
        let operations = vec![
            TxnOperation::Push(item("q", "p", "new")),
            TxnOperation::Ack {
                group: Group::queue_mode(),
                partition: batch.partition_id,
                transaction_id: "k0".to_owned(),
                status: AckStatus::Completed,
                lease: None,
                error: None,
            },
        ];
        tasks.spawn(async move {
            let extended = broker.extend_lease(TENANT, &lease, 600).await?;
            ensure!(extended.renewed == 0 && extended.expires_at.is_none(), "{extended:?}");
            let request = TxnRequest { operations, required_leases: vec![lease] };
            let outcome = broker.transaction(TENANT, request, None).await?;
            let TxnOutcome::RolledBack { reason: TxnReason::AckRejected, .. } = outcome else {
                anyhow::bail!("{outcome:?}");
            };
            Ok(())
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    assert_eq!(contents(&world).await?, before, "something changed");

    let results = one.ack(TENANT, Group::queue_mode(), acks(&new, AckStatus::Completed)).await;
    assert!(results.iter().all(|r| r.success), "{results:?}");
    let rest = two.pop(TENANT, pop_partition("q", "p", 9)).await?;
    assert_eq!(keys(&rest), ["k4", "k5"]);
    world.stop().await;
    Ok(())
}

/// Broken by first pops that wait for one another in chains, or that register a group more than once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn i37_a_crowd_of_first_pops_registers_once_and_quickly() -> anyhow::Result<()> {
    const CROWD: usize = 200;
    let world = World::start().await?;
    let items = (0..1000).map(|p| item("q", &format!("p{p}"), "old")).collect();
    let results = world.brokers[0].push(TENANT, items, None).await;
    ensure!(results.iter().all(|r| r.status == PushStatus::Queued));
    let barrier = Arc::new(Barrier::new(CROWD));
    let mut tasks = JoinSet::new();
    for n in 0..CROWD {
        let (broker, barrier) = (world.brokers[n % 2].clone(), barrier.clone());
        let request = PopRequest { group: group("crowd"), start: Some(StartPoint::New), ..pop("q", 1) };
        tasks.spawn(async move {
            barrier.wait().await;
            let start = Instant::now();
            let answer = broker.pop(TENANT, request).await?;
            ensure!(answer.is_empty(), "a message from before the group: {answer:?}");
            anyhow::Ok(start.elapsed())
        });
    }
    while let Some(task) = tasks.join_next().await {
        let took = task??;
        assert!(took < Duration::from_secs(5), "a first pop took {took:?}");
    }
    let row = world
        .client
        .query_one(
            "SELECT (SELECT count(*) FROM queen.consumer_groups_metadata),
                    (SELECT count(*) FROM queen.log_consumers WHERE committed = 0)",
            &[],
        )
        .await?;
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (1, 1000), "one registration, every cursor");
    check_tables(&world.client).await?;
    world.stop().await;
    Ok(())
}

/// Pops of every kind while others hold the locks; the partitions that were delivered come back.
async fn pops_under_locks(brokers: &[Broker; 2], rounds: usize) -> anyhow::Result<Vec<(PartitionId, usize)>> {
    let mut tasks = JoinSet::new();
    for n in 0..4 {
        let broker = brokers[n % 2].clone();
        tasks.spawn(async move {
            let mut seen = Vec::new();
            for round in 0..rounds {
                let one = pop_partition("q", &format!("p{}", (n + round) % 6), 2);
                let request = match (n + round) % 4 {
                    0 => pop("q", 3),
                    1 => PopRequest { partitions: None, auto_ack: true, ..pop("q", 3) },
                    2 => PopRequest { wait: Some(Duration::from_millis(20)), ..one },
                    _ => one,
                };
                let request = PopRequest { group: group("known"), ..request };
                let start = Instant::now();
                let answer = broker.pop(TENANT, request.clone()).await;
                let took = start.elapsed();
                let answer = answer.with_context(|| format!("{request:?}"))?;
                // The lock timeout is the judge; a busy machine needs its time.
                ensure!(took < Duration::from_secs(5), "{request:?} took {took:?}");
                seen.extend(answer.partitions.iter().map(|b| (b.partition_id, b.messages.len())));
            }
            anyhow::Ok(seen)
        });
    }
    let mut seen = Vec::new();
    while let Some(task) = tasks.join_next().await {
        seen.extend(task??);
    }
    Ok(seen)
}

/// Broken by a pop of a known group that waits for a row lock: it would fail here, since no session may wait for one
/// longer than a millisecond. Cursors that are locked are skipped; locks on partitions and queues are none of its
/// business.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn i38_a_pop_waits_for_no_lock() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let mut locker = db.connect().await?;
    locker.batch_execute(&format!("ALTER DATABASE \"{}\" SET lock_timeout = '1ms'", db.name())).await?;
    let start = || Broker::start(BrokerOptions { pg: db.options(), ..queen_tests::options() });
    let brokers = [start().await?, start().await?];
    let items = |from: usize| {
        (0..6).flat_map(move |p| (from..from + 8).map(move |i| item("q", &format!("p{p}"), &format!("k{i}"))))
    };
    brokers[0].push(TENANT, items(0).collect(), None).await;
    // The group is registered, and has a cursor everywhere.
    let known = PopRequest { group: group("known"), auto_ack: true, partitions: None, ..pop("q", 6) };
    while !brokers[0].pop(TENANT, known.clone()).await?.is_empty() {}
    brokers[0].push(TENANT, items(100).collect(), None).await;

    let locks = locker.transaction().await?;
    let all = locks.query("SELECT FROM queen.log_consumers FOR UPDATE", &[]).await?;
    assert_eq!(all.len(), 6, "the pops above made every cursor");
    let seen = pops_under_locks(&brokers, 8).await?;
    assert!(seen.is_empty(), "claimed although the cursors are locked: {seen:?}");
    locks.rollback().await?;

    let locks = locker.transaction().await?;
    let sql = "SELECT partition_id FROM queen.log_consumers ORDER BY partition_id LIMIT 3 FOR UPDATE";
    let locked: HashSet<PartitionId> =
        locks.query(sql, &[]).await?.iter().map(|row| PartitionId(row.get(0))).collect();
    locks
        .batch_execute(
            "SELECT FROM queen.log_partitions FOR NO KEY UPDATE; SELECT FROM queen.queues FOR NO KEY UPDATE;
             SELECT FROM queen.consumer_groups_metadata FOR UPDATE",
        )
        .await?;
    let seen = pops_under_locks(&brokers, 8).await?;
    assert!(!seen.is_empty(), "nothing was claimed, although half of the cursors are free");
    assert!(seen.iter().all(|(id, _)| !locked.contains(id)), "{locked:?} are locked, yet {seen:?}");
    locks.rollback().await?;
    check_tables(&locker).await?;
    for broker in &brokers {
        broker.shutdown().await;
    }
    Ok(())
}
