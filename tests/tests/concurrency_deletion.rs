//! What meets the deletion of a queue half way. A session of the test stands in for the deletion, so that each meeting
//! happens every time.

use std::time::Duration;

use anyhow::{Context, ensure};
use queen_core::api::{PopRequest, TxnOperation, TxnOutcome, TxnRequest};
use queen_core::{Broker, BrokerOptions};
use queen_testkit::wait_until;
use queen_tests::build::{acks, group, item, keys, pop, pop_partition, queue};
use queen_tests::scene::World;
use queen_tests::tables::check_tables;
use queen_types::{AckStatus, PushStatus, StartPoint, TenantId};
use tokio_postgres::Client;

const T: TenantId = TenantId::DEFAULT;
const PATIENCE: Duration = Duration::from_secs(10);

/// Sessions of the database that wait for a lock.
async fn waiting(client: &Client) -> i64 {
    let sql = "SELECT count(*) FROM pg_stat_activity
               WHERE datname = current_database() AND wait_event_type = 'Lock'";
    client.query_one(sql, &[]).await.map_or(0, |row| row.get(0))
}

/// Locks the queue `q` as a deletion does, lets `call` run into the lock, and deletes the queue under it.
async fn deleted_under<R: Send + 'static>(
    world: &World,
    call: impl FnOnce(Broker) -> tokio::task::JoinHandle<R>,
) -> anyhow::Result<R> {
    let mut session = world.db.connect().await?;
    let deletion = session.transaction().await?;
    deletion.execute("SELECT FROM queen.queues WHERE name = 'q' FOR UPDATE", &[]).await?;
    let call = call(world.brokers[1].clone());
    wait_until("the call to meet the lock", PATIENCE, async || waiting(&world.client).await > 0).await?;
    deletion
        .batch_execute(
            "DELETE FROM queen.log_segments; DELETE FROM queen.log_consumers; DELETE FROM queen.queues WHERE name = 'q'",
        )
        .await?;
    deletion.commit().await?;
    Ok(call.await?)
}

/// Broken by a push that takes the foreign key of a queue that is just gone for a mistake of its own: the queue is made
/// anew, as for a push that comes a moment later.
#[tokio::test]
async fn a_push_that_makes_a_partition_of_a_queue_being_deleted_makes_the_queue_anew() -> anyhow::Result<()> {
    let world = World::start().await?;
    world.brokers[0].push(T, vec![item("q", "old", "before")], None).await;
    let results = deleted_under(&world, |broker| {
        tokio::spawn(async move { broker.push(T, vec![item("q", "new", "after")], None).await })
    })
    .await?;
    ensure!(results[0].status == PushStatus::Queued, "{results:?}");
    ensure!(keys(&world.brokers[0].pop(T, pop("q", 9)).await?) == ["after"]);
    check_tables(&world.client).await?;
    world.stop().await;
    Ok(())
}

/// The same for a transaction.
#[tokio::test]
async fn a_transaction_that_makes_a_partition_of_a_queue_being_deleted_makes_the_queue_anew()
-> anyhow::Result<()> {
    let world = World::start().await?;
    world.brokers[0].push(T, vec![item("q", "old", "before")], None).await;
    let outcome = deleted_under(&world, |broker| {
        tokio::spawn(async move {
            let operations = vec![
                TxnOperation::Push(item("other", "p", "after")),
                TxnOperation::Push(item("q", "new", "after")),
            ];
            broker.transaction(T, TxnRequest { operations, required_leases: Vec::new() }, None).await
        })
    })
    .await??;
    ensure!(matches!(outcome, TxnOutcome::Committed(_)), "{outcome:?}");
    for name in ["other", "q"] {
        ensure!(keys(&world.brokers[0].pop(T, pop(name, 9)).await?) == ["after"], "{name}");
    }
    check_tables(&world.client).await?;
    world.stop().await;
    Ok(())
}

/// Broken by a registration that takes the vanished queue for a failure.
#[tokio::test]
async fn a_group_that_registers_on_a_queue_being_deleted_registers_on_its_successor() -> anyhow::Result<()> {
    let world = World::start().await?;
    world.brokers[0].push(T, vec![item("q", "old", "before")], None).await;
    let first = PopRequest { group: group("g"), start: Some(StartPoint::New), ..pop("q", 9) };
    let request = first.clone();
    let answer =
        deleted_under(&world, |broker| tokio::spawn(async move { broker.pop(T, request).await })).await??;
    ensure!(answer.is_empty(), "{answer:?}");
    world.brokers[0].push(T, vec![item("q", "new", "after")], None).await;
    ensure!(keys(&world.brokers[1].pop(T, first).await?) == ["after"]);
    world.stop().await;
    Ok(())
}

/// A claim that holds one cursor while it makes another, and a deletion that holds the partitions while it waits for
/// cursors. Broken by a claim that waits for a partition, which the lock order forbids: 40P01.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i31_a_claim_that_makes_a_cursor_never_deadlocks_with_a_deletion() -> anyhow::Result<()> {
    let world = World::start().await?;
    let [one, two] = &world.brokers;
    let everything = PopRequest { partitions: None, ..pop("q", 100) };
    one.push(T, vec![item("q", "known", "a")], None).await;
    let known = one.pop(T, everything.clone()).await?;
    ensure!(keys(&known) == ["a"]);
    one.ack(T, everything.group.clone(), acks(&known, AckStatus::Retry)).await;
    one.push(T, (0..3).map(|p| item("q", &format!("fresh{p}"), "b")).collect(), None).await;
    // Holds the claim between its locks and its checks for as long as the deletion needs to come in between.
    world
        .client
        .batch_execute(
            "CREATE FUNCTION public.pause() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN PERFORM pg_catalog.pg_sleep(0.2); RETURN NEW; END $$;
             CREATE TRIGGER pause BEFORE INSERT ON queen.log_consumers
                 FOR EACH ROW WHEN (NEW.committed = -1) EXECUTE FUNCTION public.pause()",
        )
        .await?;
    let claim = {
        let (one, request) = (one.clone(), everything.clone());
        tokio::spawn(async move { one.pop(T, request).await })
    };
    wait_until("the claim to hold its cursor", PATIENCE, async || {
        let held = "SELECT count(*) FROM queen.log_consumers";
        let free = "SELECT count(*) FROM (SELECT FROM queen.log_consumers FOR UPDATE SKIP LOCKED) free";
        let count = async |sql| world.client.query_one(sql, &[]).await.map_or(0, |row| row.get::<_, i64>(0));
        count(held).await > count(free).await
    })
    .await?;
    let deleted = two.delete_queue(T, &queue("q")).await.context("the deletion")?;
    ensure!(deleted.existed);
    let claimed = claim.await?.context("the claim")?;
    ensure!(claimed.partitions.iter().any(|p| p.partition.as_str() == "known"), "{claimed:?}");
    check_tables(&world.client).await?;
    world.stop().await;
    Ok(())
}

/// I-38 for a group that has no cursor yet. Broken by a claim that waits for a partition being deleted: no
/// session may wait for a lock longer than a millisecond here.
#[tokio::test]
async fn i38_a_first_claim_skips_a_partition_being_deleted() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let mut session = db.connect().await?;
    session.batch_execute(&format!("ALTER DATABASE {} SET lock_timeout = '1ms'", db.name())).await?;
    let broker = Broker::start(BrokerOptions { pg: db.options(), ..queen_tests::options() }).await?;
    broker.push(T, ["doomed", "kept"].map(|p| item("q", p, p)).into(), None).await;
    let deletion = session.transaction().await?;
    deletion.execute("SELECT FROM queen.log_partitions WHERE name = 'doomed' FOR UPDATE", &[]).await?;
    for auto_ack in [true, false] {
        let of_group = |request| PopRequest {
            group: group(if auto_ack { "once" } else { "leased" }),
            partitions: None,
            auto_ack,
            ..request
        };
        let answer =
            broker.pop(T, of_group(pop_partition("q", "doomed", 9))).await.context("one partition")?;
        ensure!(answer.is_empty(), "{answer:?}");
        let answer = broker.pop(T, of_group(pop("q", 9))).await.context("the queue")?;
        ensure!(keys(&answer) == ["kept"], "{answer:?}");
    }
    // A group that begins with what is new leaves no mark on it either.
    let new =
        PopRequest { start: Some(StartPoint::New), group: group("new"), ..pop_partition("q", "doomed", 9) };
    ensure!(broker.pop(T, new).await.context("a new group")?.is_empty());
    deletion.rollback().await?;
    let request = PopRequest { group: group("leased"), ..pop("q", 9) };
    ensure!(keys(&broker.pop(T, request).await?) == ["doomed"]);
    broker.shutdown().await;
    Ok(())
}
