//! I-45: the collation of the database changes no answer, and no order in which locks are taken.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, ensure};
use queen_core::api::{
    ConfigureRequest, DlqFilter, PopRequest, PopTarget, TxnOperation, TxnOutcome, TxnRequest,
};
use queen_core::{Broker, BrokerOptions, PgOptions};
use queen_testkit::TestDb;
use queen_tests::build::{acks, group, item, keys, pop, queue};
use queen_types::{AckStatus, Namespace, OptionsEdit, PushStatus, StartPoint, TenantId, Timestamp};
use tokio_postgres::Client;

const T: TenantId = TenantId::DEFAULT;

/// Collations that sort, compare or fold these names differently than their bytes do.
const COLLATIONS: [&str; 4] = ["tr-TR", "en-u-kn-true", "sv-u-co-standard", "de-u-kf-upper"];
const ZONES: [&str; 3] = ["Asia/Tokyo", "America/New_York", "Asia/Kathmandu"];
const NAMES: [&str; 12] = ["b", "A", "a", "Z", "ä", "Ä", "10", "9", "I", "i", "ı", "İ"];

/// Like the test's own database, but named here.
struct Database {
    options: PgOptions,
    name: String,
}

async fn create(admin: &Client, db: &TestDb, name: &str, clauses: &str) -> anyhow::Result<Database> {
    let name = format!("{}_{name}", db.name());
    admin
        .batch_execute(&format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' {clauses}"))
        .await?;
    Ok(Database { options: PgOptions { database: name.clone(), ..db.options() }, name })
}

async fn drop(admin: &Client, database: &Database) -> anyhow::Result<()> {
    Ok(admin.batch_execute(&format!("DROP DATABASE {} WITH (FORCE)", database.name)).await?)
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as i64)
}

fn is_about(what: &str, at: Timestamp, expected: i64) -> anyhow::Result<()> {
    ensure!((at.0 - expected).abs() < 5_000_000, "{what}: {at:?}, expected about {expected} µs");
    Ok(())
}

/// What a broker answers to everything that sorts, compares or shows a name or a time. Ids are left out, times are checked
/// on the way.
async fn answers(options: PgOptions) -> anyhow::Result<Vec<String>> {
    let broker = Broker::start(BrokerOptions { pg: options, ..queen_tests::options() }).await?;
    let mut said = Vec::new();
    for name in NAMES {
        let edit = OptionsEdit { namespace: Some(Namespace::new(name)?), ..OptionsEdit::default() };
        broker.configure(T, ConfigureRequest { queue: queue(name), replace: false, edit }).await?;
    }
    let items = NAMES.iter().flat_map(|q| NAMES.iter().map(move |p| item(q, p, p)));
    let pushed = broker.push(T, items.collect(), None).await;
    ensure!(pushed.iter().all(|r| r.status == PushStatus::Queued), "{pushed:?}");
    let again = broker.push(T, NAMES.iter().map(|p| item("i", "p", p)).collect(), None).await;
    ensure!(
        again.iter().all(|r| r.status == PushStatus::Queued),
        "keys that differ are no duplicates: {again:?}"
    );

    for summary in broker.queues(T).await? {
        said.push(format!("queue {} {} {:?}", summary.name, summary.partitions, summary.counts));
        is_about("a queue's creation", summary.created_at, now())?;
    }
    let detail = broker.queue(T, &queue("i")).await?.context("the queue i")?;
    for partition in detail.partitions {
        said.push(format!("partition {} {:?}", partition.name, partition.counts));
        is_about("the newest message", partition.newest_message.context("a message")?, now())?;
    }
    let depth = broker.depth(T, &queue("I"), None).await?.context("a depth")?;
    said.push(format!("depth {:?}", depth.partitions));
    said.push(format!("namespaces {:?} tasks {:?}", broker.namespaces(T).await?, broker.tasks(T).await?));
    ensure!(broker.queue(T, &queue("nobody")).await?.is_none());

    let target = PopTarget::Discovery { namespace: Some(Namespace::new("I")?), task: None };
    let request = PopRequest { target, group: group("ı"), partitions: None, ..pop("unused", 1000) };
    let found = broker.pop(T, request.clone()).await?;
    let mut names: Vec<String> = found.partitions.iter().map(|p| p.partition.to_string()).collect();
    names.sort();
    said.push(format!("discovered {names:?}"));
    for (created, _) in found.partitions.iter().flat_map(|p| &p.messages) {
        is_about("createdAt", *created, now())?;
    }
    let lease = found.lease.clone().context("a lease")?;
    let extended = broker.extend_lease(T, &lease, 900).await?;
    said.push(format!("renewed {}", extended.renewed));
    is_about("newExpiresAt", extended.expires_at.context("an expiry")?, now() + 900_000_000)?;
    let settled = broker.ack(T, group("ı"), acks(&found, AckStatus::Dlq)).await;
    said.push(format!("acks {settled:?}"));
    let other = PopRequest { group: group("i"), ..request };
    said.push(format!("another group {}", broker.pop(T, other).await?.len()));

    let minute = 60_000_000;
    for (from, to) in [(-minute, minute), (-2 * minute, -minute), (minute, 2 * minute)] {
        let filter = DlqFilter {
            from: Some(Timestamp(now() + from)),
            to: Some(Timestamp(now() + to)),
            group: Some(group("ı")),
            limit: 100,
            ..DlqFilter::default()
        };
        let page = broker.dead_letters(T, filter).await?;
        let mut keys: Vec<String> = page.records.iter().map(|r| r.transaction_id.clone()).collect();
        keys.sort();
        said.push(format!("dead letters {} {keys:?}", page.total));
        for record in page.records {
            is_about("failedAt", record.failed_at, now())?;
            is_about("the message's time", record.message_created_at.context("a time")?, now())?;
        }
    }
    // A start at an instant falls between what was stored before and after it.
    let start = Some(StartPoint::At(Timestamp(now())));
    let late = PopRequest { group: group("late"), start, partitions: None, ..pop("A", 1000) };
    ensure!(broker.pop(T, late.clone()).await?.is_empty());
    broker.push(T, vec![item("A", "9", "later")], None).await;
    said.push(format!("from an instant on {:?}", keys(&broker.pop(T, late).await?)));
    broker.shutdown().await;
    Ok(said)
}

/// Two brokers make and lock the same new queues and partitions from both ends of the alphabet.
async fn provision_from_both_ends(options: PgOptions) -> anyhow::Result<()> {
    let mut brokers = Vec::new();
    for id in ["one", "two"] {
        let options =
            BrokerOptions { pg: options.clone(), server_id: id.to_owned(), ..queen_tests::options() };
        brokers.push(Broker::start(options).await?);
    }
    for round in 0..12 {
        let name = |n: &str| format!("{n}{round}");
        let mut pushes = Vec::new();
        for (i, broker) in brokers.iter().enumerate() {
            let mut names: Vec<&str> = NAMES.to_vec();
            if i == 1 {
                names.reverse();
            }
            let operations: Vec<TxnOperation> =
                names.iter().map(|n| TxnOperation::Push(item(&name(n), n, &format!("{i}")))).collect();
            let request = TxnRequest { operations, required_leases: Vec::new() };
            let broker = broker.clone();
            pushes.push(tokio::spawn(async move { broker.transaction(T, request, None).await }));
        }
        for push in pushes {
            let outcome = push.await??;
            ensure!(matches!(outcome, TxnOutcome::Committed(_)), "{outcome:?}");
        }
    }
    for broker in brokers {
        broker.shutdown().await;
    }
    Ok(())
}

/// Broken by a statement that sorts or compares names by the database's collation, or renders or reads a time by its time
/// zone; by brokers that make rows in an order which the collation decides.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i45_neither_collation_nor_time_zone_changes_an_answer() -> anyhow::Result<()> {
    let db = queen_testkit::empty_db().await?;
    let admin = db.connect().await?;
    let version: i32 =
        admin.query_one("SELECT current_setting('server_version_num')::int", &[]).await?.get(0);
    let plain = create(&admin, &db, "plain", "LC_COLLATE 'C' LC_CTYPE 'C'").await?;
    let expected = answers(plain.options.clone()).await.context("in a plain database")?;
    drop(&admin, &plain).await?;
    if version < 150_000 {
        println!("skipped: a database collation of ICU needs PostgreSQL 15, this is {version}");
        return Ok(());
    }
    for (i, collation) in COLLATIONS.iter().enumerate() {
        let clauses =
            format!("LOCALE_PROVIDER icu ICU_LOCALE '{collation}' LC_COLLATE 'C' LC_CTYPE 'C.utf8'");
        let odd = create(&admin, &db, &format!("odd{i}"), &clauses).await?;
        let zone = ZONES[i % ZONES.len()];
        admin
            .batch_execute(&format!(
                "ALTER DATABASE {0} SET timezone = '{zone}'; ALTER DATABASE {0} SET datestyle = 'SQL, DMY';
                 ALTER DATABASE {0} SET default_transaction_isolation = 'repeatable read';
                 ALTER DATABASE {0} SET search_path = 'nowhere'; ALTER DATABASE {0} SET deadlock_timeout = '50ms'",
                odd.name
            ))
            .await?;
        let found =
            answers(odd.options.clone()).await.with_context(|| format!("with {collation}, {zone}"))?;
        for (found, expected) in found.iter().zip(&expected) {
            ensure!(found == expected, "with {collation}, {zone}:\n{found}\ninstead of\n{expected}");
        }
        ensure!(found.len() == expected.len(), "{} answers instead of {}", found.len(), expected.len());
        if i == 0 {
            provision_from_both_ends(odd.options.clone()).await.with_context(|| (*collation).to_owned())?;
            let sql = "SELECT deadlocks FROM pg_stat_database WHERE datname = $1";
            let deadlocks: i64 = admin.query_one(sql, &[&odd.name]).await?.get(0);
            ensure!(deadlocks == 0, "{deadlocks} deadlocks");
        }
        drop(&admin, &odd).await?;
    }
    Ok(())
}
