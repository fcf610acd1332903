//! How many write transactions are open at once, what becomes of those that wait, and that nothing keeps a slot.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use queen_core::api::{PopRequest, TxnOperation, TxnOutcome, TxnRequest};
use queen_core::{AdmissionLane, AdmissionOptions, Broker, BrokerOptions, Error, PerLane, PgOptions};
use queen_testkit::{TestDb, wait_until};
use queen_tests::build::{acks, item, pop};
use queen_types::{AckStatus, Group, PushStatus, TenantId};
use rand::Rng;
use tokio::task::JoinSet;
use tokio_postgres::Client;

const T: TenantId = TenantId::DEFAULT;

async fn broker(db: &TestDb, pool: usize, options: BrokerOptions) -> anyhow::Result<Broker> {
    let pg = PgOptions { pool_size: pool, statement_timeout: options.pg.statement_timeout, ..db.options() };
    Ok(Broker::start(BrokerOptions { pg, ..options }).await?)
}

fn push_of(queue: &str, partition: &str, key: &str) -> TxnRequest {
    TxnRequest {
        operations: vec![TxnOperation::Push(item(queue, partition, key))],
        required_leases: Vec::new(),
    }
}

/// Slots in flight and requests that wait, over all lanes.
fn at_work(broker: &Broker) -> (usize, usize) {
    let lanes = broker.admission().lanes;
    lanes.iter().fold((0, 0), |(held, wait), (_, lane)| (held + lane.in_flight, wait + lane.waiting))
}

/// Holds the row of a partition, so that whoever appends to it waits, until the session is told to roll back.
async fn hold_partition(db: &TestDb, partition: &str) -> anyhow::Result<Client> {
    let client = db.connect().await?;
    client.batch_execute("BEGIN").await?;
    let held =
        client.query("SELECT id FROM queen.log_partitions WHERE name = $1 FOR UPDATE", &[&partition]).await?;
    ensure!(held.len() == 1, "{} partitions are named {partition}", held.len());
    Ok(client)
}

/// Broken by a connection that is taken before the slot, or without one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a01_a_thousand_pushes_leave_the_reserve_alone_and_are_all_answered() -> anyhow::Result<()> {
    const POOL: usize = 20;
    const RESERVE: usize = 4;
    let db = queen_testkit::db().await?;
    let options = BrokerOptions {
        // As many flights as there could be, so that the arbiter is what holds them back.
        push_bundles: 64,
        // And all of the budget for one lane, so that it is used up.
        admission: AdmissionOptions {
            pool_reserve: Some(RESERVE),
            init: Some(POOL - RESERVE),
            shares: PerLane { push: 1.0, pop: 0.0, ack: 0.0, maint: 0.0 },
            ..AdmissionOptions::default()
        },
        ..queen_tests::options()
    };
    let broker = broker(&db, POOL, options).await?;
    let (is_over, peak) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let watch = {
        let (broker, is_over, peak) = (broker.clone(), is_over.clone(), peak.clone());
        tokio::spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                peak.fetch_max(broker.pool_status().active, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
        })
    };
    let mut tasks = JoinSet::new();
    for i in 0..1000 {
        let broker = broker.clone();
        tasks.spawn(async move {
            let (partition, key) = (format!("p{}", i % 50), format!("k{i}"));
            if i % 2 == 0 {
                let results = broker.push(T, vec![item("q", &partition, &key)], None).await;
                ensure!(results.iter().all(|r| r.status == PushStatus::Queued), "{results:?}");
            } else {
                let outcome = broker.transaction(T, push_of("q", &partition, &key), None).await?;
                ensure!(matches!(outcome, TxnOutcome::Committed(_)), "{outcome:?}");
            }
            anyhow::Ok(())
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    is_over.store(true, Ordering::Relaxed);
    watch.await?;
    let peak = peak.load(Ordering::Relaxed);
    // One more is the look of the reconciliation, which takes a connection of the reserve and no slot.
    let bound = POOL - RESERVE;
    ensure!(peak == bound || peak == bound + 1, "{peak} connections were in use at once");
    ensure!(at_work(&broker) == (0, 0), "{:?}", broker.admission());
    let stored: i64 = db
        .connect()
        .await?
        .query_one("SELECT sum(end_offset - base_offset + 1)::int8 FROM queen.log_segments", &[])
        .await?
        .get(0);
    ensure!(stored == 1000, "{stored} are stored");
    broker.shutdown().await;
    Ok(())
}

/// Broken by a slot or a place in the line that outlives the request or the flight that took it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a02_dropped_requests_leave_no_slot_and_no_place_in_the_line() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    // Few slots, so that there is a line.
    let admission = AdmissionOptions { min: Some(2), init: Some(2), max: 2, ..AdmissionOptions::default() };
    let broker = broker(&db, 16, BrokerOptions { admission, ..queen_tests::options() }).await?;
    broker.push(T, vec![item("q", "p", "first")], None).await;
    let mut tasks = JoinSet::new();
    for i in 0..600 {
        let broker = broker.clone();
        tasks.spawn(async move {
            let patience = Duration::from_micros(rand::rng().random_range(0..60_000));
            let request = async {
                let (partition, key) = (format!("p{}", i % 7), format!("k{i}"));
                match i % 4 {
                    0 => drop(broker.push(T, vec![item("q", &partition, &key)], None).await),
                    1 => drop(broker.transaction(T, push_of("q", &partition, &key), None).await),
                    _ => {
                        let wait = (i % 4 == 3).then_some(Duration::from_secs(5));
                        if let Ok(answer) = broker.pop(T, PopRequest { wait, ..pop("q", 2) }).await {
                            if let Some(lease) = &answer.lease {
                                let _ = broker.extend_lease(T, lease, 30).await;
                            }
                            let status = [AckStatus::Completed, AckStatus::Failed][i % 2];
                            broker.ack(T, Group::queue_mode(), acks(&answer, status)).await;
                        }
                    }
                }
            };
            // Whether it came to its end is a matter of luck.
            let _ = tokio::time::timeout(patience, request).await;
        });
    }
    while let Some(task) = tasks.join_next().await {
        task?;
    }
    let settled =
        wait_until("slots to come back", Duration::from_secs(20), async || at_work(&broker) == (0, 0)).await;
    settled.with_context(|| format!("{:?}", broker.admission()))?;
    let results = broker.push(T, vec![item("q", "after", "after")], None).await;
    ensure!(results[0].status == PushStatus::Queued, "{results:?}");
    broker.shutdown().await;
    Ok(())
}

/// Broken by a parked pop that keeps a slot or a connection, or that is not woken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a11_five_thousand_parked_pops_hold_nothing_and_one_is_served_at_once() -> anyhow::Result<()> {
    const POPS: usize = 5000;
    const QUEUES: usize = 50;
    let db = queen_testkit::db().await?;
    let broker = broker(&db, 16, queen_tests::options()).await?;
    for queue in 0..QUEUES {
        let name = format!("q{queue}");
        broker.push(T, vec![item(&name, "p", "first")], None).await;
        let answer = broker.pop(T, pop(&name, 1)).await?;
        broker.ack(T, Group::queue_mode(), acks(&answer, AckStatus::Completed)).await;
    }
    let mut pops = JoinSet::new();
    for i in 0..POPS {
        let broker = broker.clone();
        pops.spawn(async move {
            let wait = Some(Duration::from_secs(120));
            let answer = broker.pop(T, PopRequest { wait, ..pop(&format!("q{}", i % QUEUES), 1) }).await;
            anyhow::Ok((answer?, Instant::now()))
        });
    }
    let parked = || broker.parked().iter().map(|(_, pops)| pops).sum::<usize>();
    wait_until("pops to park", Duration::from_secs(100), async || {
        parked() == POPS && broker.pool_status().active == 0
    })
    .await
    .with_context(|| format!("{} parked, {:?}", parked(), broker.pool_status()))?;
    let mut samples = [0; 50];
    for sample in &mut samples {
        ensure!(broker.admission().lanes[AdmissionLane::Pop].in_flight == 0);
        *sample = broker.pool_status().active;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let busy = samples.iter().filter(|active| **active > 1).count();
    ensure!(busy < samples.len() / 5, "connections in use: {samples:?}");

    let pushed = Instant::now();
    let results = broker.push(T, vec![item("q7", "p", "second")], None).await;
    ensure!(results[0].status == PushStatus::Queued, "{results:?}");
    let (answer, at) = pops.join_next().await.context("nobody was parked")???;
    ensure!(answer.len() == 1, "{answer:?}");
    let took = at.saturating_duration_since(pushed);
    ensure!(
        took < Duration::from_millis(900),
        "delivered after {took:?}, which the floor would have done too"
    );
    broker.drain();
    while let Some(pop) = pops.join_next().await {
        ensure!(pop??.0.is_empty());
    }
    broker.shutdown().await;
    Ok(())
}

/// Broken by a statement without a deadline, by a cancel that is not sent, or by a slot that is kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a12_a_hanging_statement_ends_at_its_deadline_and_holds_nobody_else_up() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let pg = PgOptions { statement_timeout: Duration::from_secs(2), ..PgOptions::default() };
    let broker = broker(&db, 16, BrokerOptions { pg, ..queen_tests::options() }).await?;
    let both = vec![item("q", "held", "1"), item("q", "free", "1"), item("q", "free", "2")];
    broker.push(T, both, None).await;
    let answer = broker.pop(T, PopRequest { partitions: None, ..pop("q", 9) }).await?;
    ensure!(answer.len() == 3, "{answer:?}");
    let holder = hold_partition(&db, "held").await?;
    let began = Instant::now();
    let hangs = tokio::spawn({
        let broker = broker.clone();
        async move { broker.push(T, vec![item("q", "held", "2")], None).await }
    });
    wait_until("the push to hang", Duration::from_secs(1), async || {
        broker.admission().lanes[AdmissionLane::Push].in_flight == 1
    })
    .await?;

    let results = broker.ack(T, Group::queue_mode(), acks(&answer, AckStatus::Completed)).await;
    ensure!(results.iter().all(|r| r.success), "{results:?}");
    let results = broker.push(T, vec![item("q", "free", "3")], None).await;
    ensure!(results[0].status == PushStatus::Queued, "{results:?}");
    ensure!(broker.pop(T, pop("q", 9)).await?.len() == 1);
    ensure!(!hangs.is_finished(), "others were held up for {:?}", began.elapsed());

    let results = hangs.await?;
    let took = began.elapsed();
    ensure!(results[0].status == PushStatus::Failed, "{results:?}");
    ensure!((1500..4000).contains(&took.as_millis()), "given up after {took:?}");
    wait_until("the slot to come back", Duration::from_secs(5), async || at_work(&broker) == (0, 0)).await?;
    let waiting = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let is_cancelled =
        async || matches!(holder.query_one(waiting, &[]).await, Ok(row) if row.get::<_, i64>(0) == 0);
    wait_until("the cancel", Duration::from_millis(1500), is_cancelled)
        .await
        .context("the cancel reaches the server")?;
    holder.batch_execute("ROLLBACK").await?;
    let results = broker.push(T, vec![item("q", "held", "2")], None).await;
    ensure!(results[0].status == PushStatus::Queued, "{results:?}");
    broker.shutdown().await;
    Ok(())
}

/// Broken by a wait for a slot that has no bound, or by a refusal that looks like an empty queue or a failed statement.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_gets_no_slot_in_time_is_told_to_come_again() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let admission = AdmissionOptions {
        min: Some(1),
        init: Some(1),
        max: 1,
        tick: Duration::from_millis(100),
        wait: Duration::from_millis(300),
        ..AdmissionOptions::default()
    };
    let broker = broker(&db, 16, BrokerOptions { admission, ..queen_tests::options() }).await?;
    broker.push(T, vec![item("q", "held", "1"), item("q", "free", "1"), item("q", "free", "2")], None).await;
    let answer = broker.pop(T, pop("q", 1)).await?;
    let lease = answer.lease.clone().context("a lease")?;
    let holder = hold_partition(&db, "held").await?;
    let hangs = tokio::spawn({
        let broker = broker.clone();
        async move { broker.push(T, vec![item("q", "held", "2")], None).await }
    });
    wait_until("the push to hang", Duration::from_secs(2), async || at_work(&broker).0 == 1).await?;

    let began = Instant::now();
    let refused = broker.transaction(T, push_of("q", "free", "3"), None).await;
    ensure!(matches!(refused, Err(Error::Overloaded(_))), "{refused:?}");
    let refused = broker.pop(T, pop("q", 1)).await;
    ensure!(matches!(refused, Err(Error::Overloaded(_))), "{refused:?}");
    let refused = broker.extend_lease(T, &lease, 60).await;
    ensure!(matches!(refused, Err(Error::Overloaded(_))), "{refused:?}");
    for status in [AckStatus::Completed, AckStatus::Failed] {
        let refused = broker.ack(T, Group::queue_mode(), acks(&answer, status)).await;
        ensure!(refused.iter().all(|r| r.overloaded && !r.success), "{refused:?}");
    }
    let refused = broker.push(T, vec![item("q", "free", "3")], None).await;
    ensure!(refused[0].status == PushStatus::Failed, "{refused:?}");
    ensure!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());

    holder.batch_execute("ROLLBACK").await?;
    ensure!(hangs.await?[0].status == PushStatus::Queued);
    let results = broker.ack(T, Group::queue_mode(), acks(&answer, AckStatus::Completed)).await;
    ensure!(results.iter().all(|r| r.success), "{results:?}");
    broker.shutdown().await;
    Ok(())
}
