//! Acks of whole batches that share a commit: one flush for all that wait, whoever hangs up and whatever one of them meets.

use std::time::Duration;

use anyhow::ensure;
use queen_core::api::{AckResult, PopAnswer, PopRequest};
use queen_core::{Broker, BrokerOptions};
use queen_testkit::{TestDb, wait_until};
use queen_tests::build::{acks, broker, item, keys, pop, pop_partition, push};
use queen_tests::tables::check_tables;
use queen_types::{AckStatus, Group, PushStatus, TenantId};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

const T: TenantId = TenantId::DEFAULT;
const PATIENCE: Duration = Duration::from_secs(60);

/// `count` partitions with one message each, leased one by one.
async fn leased(broker: &Broker, count: usize) -> anyhow::Result<Vec<PopAnswer>> {
    let items = (0..count).map(|n| item("q", &format!("p{n}"), "m")).collect();
    ensure!(broker.push(T, items, None).await.iter().all(|r| r.status == PushStatus::Queued));
    let mut held = Vec::new();
    for n in 0..count {
        held.push(broker.pop(T, pop_partition("q", &format!("p{n}"), 1)).await?);
    }
    ensure!(held.iter().all(|answer| answer.len() == 1));
    Ok(held)
}

/// Ends when a flush waits for a row of the test's.
async fn a_flush_waits(client: &Client) -> anyhow::Result<()> {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
               AND wait_event_type = 'Lock' AND query LIKE '%-- Completes whole batches%'";
    wait_until("a flush that waits", PATIENCE, async || {
        client.query_one(sql, &[]).await.is_ok_and(|row| row.get::<_, i64>(0) > 0)
    })
    .await
}

/// Acks each answer, the first one while its row is locked: its flush waits, and the others wait for that. They go on when the
/// session that comes back commits.
async fn acks_behind_a_lock(
    db: &TestDb,
    broker: &Broker,
    held: &[PopAnswer],
) -> anyhow::Result<(Client, Vec<JoinHandle<Vec<AckResult>>>)> {
    let locker = db.connect().await?;
    locker.batch_execute("BEGIN").await?;
    let first = held[0].partitions[0].partition_id.0;
    locker.execute("SELECT FROM queen.log_consumers WHERE partition_id = $1 FOR UPDATE", &[&first]).await?;
    let start = |answer: &PopAnswer| {
        let (broker, items) = (broker.clone(), acks(answer, AckStatus::Completed));
        tokio::spawn(async move { broker.ack(T, Group::queue_mode(), items).await })
    };
    let mut calls = vec![start(&held[0])];
    a_flush_waits(&db.connect().await?).await?;
    calls.extend(held[1..].iter().map(start));
    Ok((locker, calls))
}

/// 64 acks at once: one flush is held up, and the others wait for it together. Broken by an ack that commits on its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acks_that_wait_share_a_commit() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let client = db.connect().await?;
    let broker = broker(&db, BrokerOptions { ack_flushes: 1, ..queen_tests::options() }).await?;
    let held = leased(&broker, 65).await?;
    let (locker, calls) = acks_behind_a_lock(&db, &broker, &held).await?;
    tokio::time::sleep(Duration::from_millis(300)).await;
    ensure!(calls.iter().all(|call| !call.is_finished()), "an answer came before its commit");
    locker.batch_execute("COMMIT").await?;
    for call in calls {
        let results = call.await?;
        ensure!(results[0].success && results[0].lease_released, "{results:?}");
    }
    let commits = "SELECT count(DISTINCT xmin::text) FROM queen.log_consumers WHERE worker_id IS NULL AND committed = 0";
    let commits: i64 = client.query_one(commits, &[]).await?.get(0);
    ensure!(commits == 2, "{commits} commits for 65 acks");
    check_tables(&client).await?;
    broker.shutdown().await;
    Ok(())
}

/// Broken by a flush that goes with the request that began it, and by anything of a dropped request that holds up the
/// acks after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acks_whose_callers_hang_up_are_committed_all_the_same() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let client = db.connect().await?;
    let broker = broker(&db, BrokerOptions { ack_flushes: 1, ..queen_tests::options() }).await?;
    let held = leased(&broker, 20).await?;
    let (locker, mut calls) = acks_behind_a_lock(&db, &broker, &held).await?;
    tokio::time::sleep(Duration::from_millis(200)).await;
    // The one whose flush flies, and half of those that wait.
    for call in calls.drain(..10) {
        call.abort();
        ensure!(call.await.is_err_and(|error| error.is_cancelled()));
    }
    locker.batch_execute("COMMIT").await?;
    for call in calls {
        let results = call.await?;
        ensure!(results[0].success && results[0].lease_released, "{results:?}");
    }
    let open = "SELECT count(*) FROM queen.log_consumers WHERE worker_id IS NOT NULL OR committed <> 0";
    ensure!(client.query_one(open, &[]).await?.get::<_, i64>(0) == 0);
    // The next ones fly at once.
    push(&broker, "q", "p0", &["next"]).await?;
    let next = broker.pop(T, pop_partition("q", "p0", 1)).await?;
    ensure!(broker.ack(T, Group::queue_mode(), acks(&next, AckStatus::Completed)).await[0].success);
    broker.shutdown().await;
    ensure!(broker.pool_status().active == 0, "{:?}", broker.pool_status());
    Ok(())
}

/// [B-26]. Broken by a row that the database refuses for good and that takes its neighbours down with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_cannot_be_completed_fails_alone() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let client = db.connect().await?;
    let broker = broker(&db, queen_tests::options()).await?;
    let mut held = leased(&broker, 9).await?;
    let bad = held[4].partitions[0].partition_id;
    client
        .batch_execute(&format!(
            "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN RAISE EXCEPTION 'refused by the test' USING ERRCODE = '23514'; END $$;
             CREATE TRIGGER refuse BEFORE UPDATE ON queen.log_consumers FOR EACH ROW
                 WHEN (NEW.partition_id = '{bad}') EXECUTE FUNCTION public.refuse()"
        ))
        .await?;
    let items = held.iter().flat_map(|answer| acks(answer, AckStatus::Completed)).collect();
    let results = broker.ack(T, Group::queue_mode(), items).await;
    for (i, result) in results.iter().enumerate() {
        let failed = result.error.as_deref() == Some("ack flush failed; lease will expire and redeliver");
        ensure!(result.success == (i != 4) && failed == (i == 4), "{results:?}");
    }
    client.batch_execute("DROP FUNCTION public.refuse() CASCADE").await?;
    // Its lease stands, and another ack is taken.
    let again = acks(&held.remove(4), AckStatus::Completed);
    ensure!(broker.ack(T, Group::queue_mode(), again).await[0].success);
    check_tables(&client).await?;
    broker.shutdown().await;
    Ok(())
}

/// A passing failure is overcome in place; one that stays is told, and costs the batch nothing but the wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_passing_failure_of_a_flush_is_overcome_once() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let client = db.connect().await?;
    let broker = broker(&db, queen_tests::options()).await?;
    for (strikes, overcome) in [(1, true), (2, false)] {
        push(&broker, "q", "p", &[&format!("m{strikes}")]).await?;
        let held = broker.pop(T, pop("q", 1)).await?;
        client
            .batch_execute(&format!(
                "CREATE SEQUENCE public.strikes;
                 CREATE FUNCTION public.strike() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                     IF nextval('public.strikes') <= {strikes} THEN
                         RAISE EXCEPTION 'conflict made by the test' USING ERRCODE = '40001'; END IF;
                     RETURN NEW; END $$;
                 CREATE TRIGGER strike BEFORE UPDATE ON queen.log_consumers FOR EACH ROW
                     EXECUTE FUNCTION public.strike()"
            ))
            .await?;
        let results = broker.ack(T, Group::queue_mode(), acks(&held, AckStatus::Completed)).await;
        client.batch_execute("DROP FUNCTION public.strike() CASCADE; DROP SEQUENCE public.strikes").await?;
        ensure!(results[0].success == overcome, "{strikes}: {results:?}");
        if !overcome {
            let again = broker.ack(T, Group::queue_mode(), acks(&held, AckStatus::Completed)).await;
            ensure!(again[0].success && again[0].lease_released, "{again:?}");
        }
    }
    broker.shutdown().await;
    Ok(())
}

/// A whole batch that is done wakes the pop that waits for the partition, long before the floor would.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_whole_batch_wakes_the_next_pop() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let options = BrokerOptions { wait_floor: Duration::from_secs(600), ..queen_tests::options() };
    let broker = broker(&db, options).await?;
    push(&broker, "q", "p", &["a", "b"]).await?;
    let held = broker.pop(T, pop("q", 1)).await?;
    let waiting = tokio::spawn({
        let broker = broker.clone();
        async move { broker.pop(T, PopRequest { wait: Some(PATIENCE), ..pop("q", 1) }).await }
    });
    wait_until("a parked pop", PATIENCE, async || !broker.parked().is_empty()).await?;
    ensure!(broker.ack(T, Group::queue_mode(), acks(&held, AckStatus::Completed)).await[0].success);
    ensure!(keys(&waiting.await??) == ["b"]);
    broker.shutdown().await;
    Ok(())
}
