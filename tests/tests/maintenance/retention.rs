//! Retention while whole brokers push, pop and ack.

use std::time::{Duration, Instant};

use anyhow::ensure;
use queen_core::api::{ConfigureRequest, PopRequest};
use queen_core::{Broker, BrokerOptions, UpkeepOptions};
use queen_testkit::{TestDb, wait_until};
use queen_tests::build::{acks, group, item, keys, pop, queue};
use queen_tests::tables::check_tables;
use queen_types::{AckStatus, OptionsEdit, PushStatus, StartPoint, TenantId};
use tokio_postgres::Client;

const T: TenantId = TenantId::DEFAULT;
const PATIENCE: Duration = Duration::from_secs(20);

/// A broker whose background work comes often.
pub(crate) fn busy(db: &TestDb, id: &str) -> BrokerOptions {
    BrokerOptions {
        pg: db.options(),
        server_id: id.to_owned(),
        upkeep: UpkeepOptions {
            retention: true,
            retention_interval: Duration::from_millis(100),
            retention_batch: 8,
            stats: true,
            stats_interval: Duration::from_millis(200),
            bytes_interval: Duration::from_millis(200),
            metrics_flush: Some(Duration::from_millis(200)),
            ..UpkeepOptions::default()
        },
        ..queen_tests::options()
    }
}

async fn configure(broker: &Broker, name: &str, edit: OptionsEdit) -> anyhow::Result<()> {
    broker.configure(T, ConfigureRequest { queue: queue(name), replace: true, edit }).await?;
    Ok(())
}

async fn count(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.map_or(-1, |row| row.get(0))
}

const SEGMENTS: &str = "SELECT count(*) FROM queen.log_segments";

fn all(name: &str, batch: u32) -> PopRequest {
    PopRequest { start: Some(StartPoint::All), group: group("g"), partitions: Some(10), ..pop(name, batch) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_consumed_goes_soon_after_the_ack_and_what_is_not_stays() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let broker = Broker::start(busy(&db, "one")).await?;
    let client = db.connect().await?;
    let edit = OptionsEdit {
        retention_enabled: Some(true),
        completed_retention_seconds: Some(1),
        ..OptionsEdit::default()
    };
    configure(&broker, "q", edit).await?;
    for i in 0..20 {
        broker.push(T, vec![item("q", &format!("p{}", i % 3), &format!("m{i}"))], None).await;
    }
    let first = broker.pop(T, all("q", 20)).await?;
    ensure!(keys(&first).len() == 20, "{:?}", keys(&first));
    // Old enough for a while, but under a lease of a group that has not acked.
    tokio::time::sleep(Duration::from_millis(1_600)).await;
    ensure!(count(&client, SEGMENTS).await == 20);
    broker.ack(T, group("g"), acks(&first, AckStatus::Completed)).await;
    wait_until("the consumed messages to go", PATIENCE, async || count(&client, SEGMENTS).await == 0).await?;
    // The log goes on where it ended, ids are still known, and nothing old comes back.
    let again = broker.push(T, vec![item("q", "p0", "m0"), item("q", "p0", "new")], None).await;
    ensure!(again[0].status == PushStatus::Duplicate && again[1].status == PushStatus::Queued, "{again:?}");
    ensure!(keys(&broker.pop(T, all("q", 20)).await?) == ["new"]);
    check_tables(&client).await?;
    broker.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_brokers_does_each_cycle_and_the_other_goes_on_when_it_ends() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let one = Broker::start(busy(&db, "one")).await?;
    let two = Broker::start(busy(&db, "two")).await?;
    let client = db.connect().await?;
    let edit =
        OptionsEdit { retention_enabled: Some(true), retention_seconds: Some(1), ..OptionsEdit::default() };
    configure(&one, "q", edit).await?;
    let began = Instant::now();
    let before = count(&client, "SELECT runs FROM queen.maintenance_leases WHERE task = 'retention'").await;
    for i in 0..30 {
        one.push(T, vec![item("q", "p", &format!("a{i}"))], None).await;
    }
    wait_until("the old messages to go", PATIENCE, async || count(&client, SEGMENTS).await == 0).await?;
    let runs =
        count(&client, "SELECT runs FROM queen.maintenance_leases WHERE task = 'retention'").await - before;
    let most = i64::try_from(began.elapsed().as_millis() / 100)? + 2;
    ensure!(runs <= most, "{runs} cycles, {most} periods: two brokers do no more than one");
    let deleted = "SELECT COALESCE(sum(messages_deleted), 0)::int8 FROM queen.retention_history";
    ensure!(count(&client, deleted).await == 30, "each message was deleted once");
    one.shutdown().await;
    two.push(T, vec![item("q", "p", "b")], None).await;
    wait_until("the other broker to go on", PATIENCE, async || count(&client, SEGMENTS).await == 0).await?;
    check_tables(&client).await?;
    two.shutdown().await;
    Ok(())
}

/// I-33, I-35 and I-31 with cleanup: pushes, pops and acks of two brokers while both delete by age, and while partitions
/// that just became empty are deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retention_and_cleanup_race_pushes_pops_and_acks() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let brokers = [Broker::start(busy(&db, "one")).await?, Broker::start(busy(&db, "two")).await?];
    let client = db.connect().await?;
    let edit = OptionsEdit {
        retention_enabled: Some(true),
        completed_retention_seconds: Some(1),
        dedup_window_seconds: Some(0),
        ..OptionsEdit::default()
    };
    configure(&brokers[0], "q", edit).await?;
    // Everything looks idle for a month as soon as it is empty.
    let idle = "UPDATE queen.log_partitions SET created_at = now() - interval '40 days',
            last_write_at = now() - interval '40 days' WHERE oldest_live_at IS NULL;
        UPDATE queen.log_consumers SET created_at = now() - interval '40 days', active_at = now() - interval '40 days'
            WHERE worker_id IS NULL";
    let mut got = Vec::new();
    let mut sent = 0;
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(4_000) {
        for (i, broker) in brokers.iter().enumerate() {
            let partition = format!("p{}", (sent / 8 + i) % 12);
            let results = broker.push(T, vec![item("q", &partition, &format!("m{sent}"))], None).await;
            ensure!(results[0].status == PushStatus::Queued, "{results:?}");
            sent += 1;
            let answer = broker.pop(T, all("q", 10)).await?;
            let acked = broker.ack(T, group("g"), acks(&answer, AckStatus::Completed)).await;
            ensure!(acked.iter().all(|ack| ack.success), "{acked:?}");
            got.extend(keys(&answer));
        }
        client.batch_execute(idle).await?;
        brokers[sent % 2].clean_up_partitions(30).await?;
    }
    wait_until("every message to be delivered", PATIENCE, async || {
        let Ok(answer) = brokers[0].pop(T, all("q", 100)).await else { return false };
        brokers[0].ack(T, group("g"), acks(&answer, AckStatus::Completed)).await;
        got.extend(keys(&answer));
        got.len() >= sent
    })
    .await?;
    got.sort_unstable();
    got.dedup();
    ensure!(got.len() == sent, "{} of {sent} messages were delivered", got.len());
    let cleaned =
        "SELECT count(*) FROM queen.retention_history WHERE retention_type = '__partition_deleted__'";
    println!("{sent} messages, {} partitions deleted", count(&client, cleaned).await);
    check_tables(&client).await?;
    for broker in &brokers {
        broker.shutdown().await;
    }
    Ok(())
}

/// Whatever order things happen in, the notes say what the tables have (I-34).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_notes_follow_a_partition_that_empties_and_fills_again() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let broker = Broker::start(busy(&db, "one")).await?;
    let client = db.connect().await?;
    let edit =
        OptionsEdit { retention_enabled: Some(true), retention_seconds: Some(1), ..OptionsEdit::default() };
    configure(&broker, "q", edit).await?;
    let note = "SELECT count(*) FROM queen.log_partitions WHERE oldest_live_at IS NOT NULL AND retention_from IS NOT NULL";
    let right = "SELECT count(*) FROM queen.log_partitions p
        WHERE p.oldest_live_at = (SELECT min(s.created_at) FROM queen.log_segments s WHERE s.partition_id = p.id)";
    for round in 0..2 {
        broker.push(T, vec![item("q", "p", &format!("m{round}"))], None).await;
        if round > 0 {
            wait_until("the note", PATIENCE, async || count(&client, right).await == 1).await?;
        }
        wait_until("the partition to empty", PATIENCE, async || count(&client, note).await == 0).await?;
        ensure!(count(&client, SEGMENTS).await == 0);
    }
    broker.shutdown().await;
    Ok(())
}
