//! What the database does to a broker: backends killed, links cut, a failover that lost commits.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use queen_core::api::{AckResult, PopAnswer, PopRequest, TxnOperation, TxnOutcome, TxnRequest};
use queen_core::{Broker, BrokerOptions, Error, PgOptions};
use queen_testkit::{FaultProxy, TestDb, wait_until};
use queen_tests::build::{acks, group, item, keys, pop, pop_partition, queue};
use queen_tests::tables::check_tables;
use queen_types::{AckStatus, Group, PushStatus, TenantId};
use rand::Rng;
use tokio_postgres::Client;

const T: TenantId = TenantId::DEFAULT;

/// How long the faults go on.
const TROUBLE: Duration = Duration::from_secs(5);

struct Proxied {
    broker: Broker,
    proxy: FaultProxy,
    client: Client,
    _db: TestDb,
}

/// A broker that reaches its database through a link that can be cut.
async fn proxied() -> anyhow::Result<Proxied> {
    let db = queen_testkit::db().await?;
    let direct = db.options();
    let proxy = FaultProxy::start(&direct.host, direct.port).await?;
    let pg = PgOptions {
        host: "127.0.0.1".to_owned(),
        port: proxy.port(),
        connect_timeout: Duration::from_millis(500),
        pool_wait: Duration::from_millis(500),
        ..direct
    };
    let broker = Broker::start(BrokerOptions { pg, ..queen_tests::options() }).await?;
    let client = db.connect().await?;
    Ok(Proxied { broker, proxy, client, _db: db })
}

/// Kills the broker's sessions again and again until told to stop.
async fn kill_sessions(client: Client, stop: Arc<AtomicBool>) -> anyhow::Result<u64> {
    let mut killed = 0;
    while !stop.load(Ordering::Relaxed) {
        let pause = rand::rng().random_range(5..60);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        killed += client
            .execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle' AND random() < 0.5",
                &[],
            )
            .await?;
    }
    Ok(killed)
}

/// Pops everything of a queue for a group, acking as it goes.
async fn drain(broker: &Broker, queue_name: &str, reader: &Group) -> anyhow::Result<Vec<String>> {
    let mut all = Vec::new();
    loop {
        let request = PopRequest { group: reader.clone(), partitions: None, ..pop(queue_name, 500) };
        let answer = broker.pop(T, request).await?;
        if answer.is_empty() {
            return Ok(all);
        }
        all.extend(keys(&answer));
        let results = broker.ack(T, reader.clone(), acks(&answer, AckStatus::Completed)).await;
        ensure!(results.iter().all(|r| r.success), "{results:?}");
    }
}

/// I-5: a push whose backend dies leaves nothing half done: what was answered `queued` is there once, what was not is
/// there at most once. Breaks when a segment can be stored apart from its hashes or an answer can precede the commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i5_a_killed_push_leaves_all_or_nothing() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let broker = Broker::start(BrokerOptions { pg: db.options(), ..queen_tests::options() }).await?;
    broker.push(T, vec![item("q", "0", "first")], None).await;
    let stop = Arc::new(AtomicBool::new(false));
    let killer = tokio::spawn(kill_sessions(db.connect().await?, stop.clone()));
    let mut producers = Vec::new();
    for p in 0..4 {
        let (broker, stop) = (broker.clone(), stop.clone());
        producers.push(tokio::spawn(async move {
            let mut answers: HashMap<String, PushStatus> = HashMap::new();
            let mut n = 0;
            while !stop.load(Ordering::Relaxed) {
                let items: Vec<_> =
                    (0..3).map(|i| item("q", &((p + i) % 4).to_string(), &format!("{p}-{n}-{i}"))).collect();
                n += 1;
                for (i, result) in broker.push(T, items, None).await.into_iter().enumerate() {
                    answers.insert(format!("{p}-{}-{i}", n - 1), result.status);
                }
            }
            answers
        }));
    }
    tokio::time::sleep(TROUBLE).await;
    stop.store(true, Ordering::Relaxed);
    let killed = killer.await??;
    let mut answers = HashMap::new();
    for producer in producers {
        answers.extend(producer.await?);
    }
    check_tables(&db.connect().await?).await?;
    let stored = drain(&broker, "q", &group("reader")).await?;
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for key in &stored {
        *counts.entry(key).or_default() += 1;
    }
    // A push repeats what the server rolled back for such a reason, so few or none of them fail.
    ensure!(killed > 0, "no fault happened");
    for (key, status) in &answers {
        let count = counts.get(key.as_str()).copied().unwrap_or(0);
        match status {
            PushStatus::Queued => ensure!(count == 1, "{key} was answered queued and is there {count} times"),
            _ => ensure!(count <= 1, "{key} was answered {status:?} and is there {count} times"),
        }
    }
    broker.shutdown().await;
    Ok(())
}

/// I-29: a transaction whose backend dies at any moment is there whole or not at all. Breaks when a push of it, its ack
/// or a queue that it creates is committed apart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i29_a_killed_transaction_is_whole_or_absent() -> anyhow::Result<()> {
    let db = queen_testkit::db().await?;
    let broker = Broker::start(BrokerOptions { pg: db.options(), ..queen_tests::options() }).await?;
    let sources: Vec<_> = (0..2000).map(|i| item("src", &(i % 8).to_string(), &format!("s{i}"))).collect();
    ensure!(broker.push(T, sources, None).await.iter().all(|r| r.status == PushStatus::Queued));
    let stop = Arc::new(AtomicBool::new(false));
    let killer = tokio::spawn(kill_sessions(db.connect().await?, stop.clone()));
    let mut workers = Vec::new();
    for _ in 0..4 {
        let (broker, stop) = (broker.clone(), stop.clone());
        workers.push(tokio::spawn(async move {
            let mut outcomes: HashMap<String, bool> = HashMap::new();
            while !stop.load(Ordering::Relaxed) {
                let request = PopRequest { lease_seconds: Some(1), ..pop("src", 1) };
                let Ok(answer) = broker.pop(T, request).await else { continue };
                for (key, operations) in hand_off(&answer) {
                    let request = TxnRequest {
                        operations,
                        required_leases: answer.lease.clone().into_iter().collect(),
                    };
                    let outcome = broker.transaction(T, request, None).await;
                    outcomes.insert(key, matches!(outcome, Ok(TxnOutcome::Committed(_))));
                }
            }
            outcomes
        }));
    }
    tokio::time::sleep(TROUBLE).await;
    stop.store(true, Ordering::Relaxed);
    let killed = killer.await??;
    let mut outcomes: HashMap<String, bool> = HashMap::new();
    for worker in workers {
        for (key, committed) in worker.await? {
            *outcomes.entry(key).or_default() |= committed;
        }
    }
    let client = db.connect().await?;
    check_tables(&client).await?;
    let reader = group("reader");
    let mut a = drain(&broker, "a", &reader).await?;
    let mut b = drain(&broker, "b", &reader).await?;
    a.sort();
    b.sort();
    ensure!(a == b, "one half of a transaction is there without the other");
    let done: i64 =
        client.query_one("SELECT COALESCE(sum(committed + 1), 0)::int8 FROM queen.log_consumers WHERE consumer_group = '__QUEUE_MODE__'", &[]).await?.get(0);
    ensure!(done == a.len() as i64, "{done} sources are acked, {} transactions are there", a.len());
    let committed = outcomes.iter().filter(|(_, c)| **c).map(|(k, _)| k.clone()).collect::<Vec<_>>();
    ensure!(
        killed > 0 && !committed.is_empty() && committed.len() < outcomes.len(),
        "no fault met a transaction"
    );
    for key in committed {
        ensure!(a.binary_search(&key).is_ok(), "{key} was answered committed and is not there");
    }
    broker.shutdown().await;
    Ok(())
}

/// One transaction per message: a message each to two queues, and the ack.
fn hand_off(answer: &PopAnswer) -> Vec<(String, Vec<TxnOperation>)> {
    let messages =
        answer.partitions.iter().flat_map(|p| p.messages.iter().map(move |(_, m)| (p.partition_id, m)));
    messages
        .map(|(partition, message)| {
            let key = message.transaction_id.to_string();
            let operations = vec![
                TxnOperation::Push(item("a", "p", &key)),
                TxnOperation::Ack {
                    group: Group::queue_mode(),
                    partition,
                    transaction_id: key.clone(),
                    status: AckStatus::Completed,
                    lease: None,
                    error: None,
                },
                TxnOperation::Push(item("b", "p", &key)),
            ];
            (key, operations)
        })
        .collect()
}

/// [E-25]: without its database a broker says so; it never calls a queue empty, and it recovers by itself.
#[tokio::test]
async fn an_outage_is_told_and_overcome() -> anyhow::Result<()> {
    let Proxied { broker, proxy, client: _client, _db } = proxied().await?;
    broker.push(T, vec![item("q", "p", "before")], None).await;
    let held = broker.pop(T, pop("q", 1)).await?;
    proxy.cut();
    for request in
        [pop("q", 1), pop_partition("q", "p", 1), PopRequest { group: group("new"), ..pop("other", 1) }]
    {
        let refused = broker.pop(T, request).await;
        ensure!(matches!(refused, Err(Error::Pool(_) | Error::Statement { .. })), "{refused:?}");
    }
    let pushed = broker.push(T, vec![item("q", "p", "during")], None).await;
    ensure!(pushed[0].status == PushStatus::Failed && pushed[0].error.is_some(), "{pushed:?}");
    let acked: Vec<AckResult> = broker.ack(T, Group::queue_mode(), acks(&held, AckStatus::Completed)).await;
    let told = acked[0].error.as_deref();
    ensure!(
        !acked[0].success
            && matches!(
                told,
                Some("pool" | "db error" | "ack flush failed; lease will expire and redeliver")
            ),
        "{acked:?}"
    );
    ensure!(!broker.database_alive().await);
    proxy.restore();
    wait_until("recovery", Duration::from_secs(10), async || broker.database_alive().await).await?;
    ensure!(broker.ack(T, Group::queue_mode(), acks(&held, AckStatus::Completed)).await[0].success);
    let pushed = broker.push(T, vec![item("q", "p", "after")], None).await;
    ensure!(pushed[0].status == PushStatus::Queued, "{pushed:?}");
    ensure!(keys(&broker.pop(T, pop("q", 9)).await?) == ["after"]);
    broker.shutdown().await;
    Ok(())
}

/// [E-66]: a failover that lost commits leaves cursors beyond the log; they are set back to its end, else the messages
/// that take the lost offsets would be skipped unseen.
#[tokio::test]
async fn a_cursor_beyond_the_log_is_set_back() -> anyhow::Result<()> {
    let Proxied { broker, client, proxy: _proxy, _db } = proxied().await?;
    for (name, by_partition) in [("whole", false), ("pinned", true)] {
        let request = |batch| if by_partition { pop_partition(name, "p", batch) } else { pop(name, batch) };
        for key in ["a", "b", "c"] {
            broker.push(T, vec![item(name, "p", key)], None).await;
        }
        let all = broker.pop(T, request(9)).await?;
        ensure!(keys(&all) == ["a", "b", "c"]);
        broker.ack(T, Group::queue_mode(), acks(&all, AckStatus::Completed)).await;
        client
            .execute(
                "DELETE FROM queen.log_segments s USING queen.log_partitions p, queen.queues q
                 WHERE s.partition_id = p.id AND q.id = p.queue_id AND q.name = $1 AND s.base_offset > 0",
                &[&name],
            )
            .await?;
        ensure!(broker.pop(T, request(9)).await?.is_empty());
        broker.push(T, vec![item(name, "p", "d")], None).await;
        ensure!(keys(&broker.pop(T, request(9)).await?) == ["d"], "{name}: the new message was skipped");
    }
    check_tables(&client).await?;
    broker.shutdown().await;
    Ok(())
}

/// [E-24]: a pop that is given up never hides its messages for the length of a lease.
#[tokio::test]
async fn a_dropped_pop_gives_its_lease_back() -> anyhow::Result<()> {
    let Proxied { broker, proxy: _proxy, client: _client, _db } = proxied().await?;
    broker.push(T, vec![item("q", "p", "only")], None).await;
    for _ in 0..60 {
        let patience = Duration::from_micros(rand::rng().random_range(0..6000));
        if let Ok(answer) = tokio::time::timeout(patience, broker.pop(T, pop("q", 1))).await {
            let answer = answer?;
            if !answer.is_empty() {
                broker.ack(T, Group::queue_mode(), acks(&answer, AckStatus::Retry)).await;
            }
        }
    }
    let again = async || broker.pop(T, pop("q", 1)).await.is_ok_and(|answer| !answer.is_empty());
    wait_until("the message", Duration::from_secs(5), again).await.context("its lease lasts 60 s")?;
    broker.shutdown().await;
    Ok(())
}

/// I-46: parked pops hold no connection, no lock and no transaction, and cost next to no commits.
#[tokio::test]
async fn i46_parked_pops_hold_nothing() -> anyhow::Result<()> {
    let Proxied { broker, client, proxy: _proxy, _db } = proxied().await?;
    broker.push(T, vec![item("q", "p", "seen")], None).await;
    let first = broker.pop(T, pop("q", 1)).await?;
    broker.ack(T, Group::queue_mode(), acks(&first, AckStatus::Completed)).await;
    let parked: Vec<_> = (0..50)
        .map(|i| {
            let broker = broker.clone();
            let request = if i % 2 == 0 { pop("q", 1) } else { pop_partition("q", "p", 1) };
            tokio::spawn(async move {
                broker.pop(T, PopRequest { wait: Some(Duration::from_secs(60)), ..request }).await
            })
        })
        .collect();
    let all = async || broker.parked().iter().map(|(_, n)| n).sum::<usize>() == 50;
    wait_until("50 parked pops", Duration::from_secs(10), all).await?;
    wait_until("an idle pool", Duration::from_secs(5), async || broker.pool_status().active == 0).await?;
    let busy: i64 = client
        .query_one(
            "SELECT count(*) FROM pg_stat_activity a LEFT JOIN pg_locks l ON l.pid = a.pid
             WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.application_name LIKE 'queen%'
               AND (a.state <> 'idle' OR l.locktype IN ('tuple', 'transactionid', 'advisory'))",
            &[],
        )
        .await?
        .get(0);
    ensure!(busy == 0, "{busy} sessions of the broker are busy or hold locks");
    // Statements rather than commits: idle sessions report theirs up to ten seconds late.
    let mut statements = std::collections::HashSet::new();
    let since: std::time::SystemTime = client.query_one("SELECT clock_timestamp()", &[]).await?.get(0);
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let recent = "SELECT pid, query_start::text FROM pg_stat_activity
                      WHERE datname = current_database() AND pid <> pg_backend_pid() AND query_start > $1";
        for row in client.query(recent, &[&since]).await? {
            statements.insert((row.get::<_, i32>(0), row.get::<_, String>(1)));
        }
    }
    ensure!(
        (1..=5).contains(&statements.len()),
        "{} statements in 3 s while 50 pops were parked",
        statements.len()
    );
    broker.drain();
    for pop in parked {
        ensure!(pop.await??.is_empty());
    }
    broker.shutdown().await;
    Ok(())
}

/// A queue deleted and made anew under pushes and pops of two brokers never answers an error for long, and what is
/// pushed afterwards is delivered.
#[tokio::test]
async fn a_queue_deleted_under_load_starts_anew() -> anyhow::Result<()> {
    let Proxied { broker, client, proxy: _proxy, _db } = proxied().await?;
    let name = queue("q");
    for round in 0..10 {
        let results = broker.push(T, vec![item("q", "p", "same"), item("q", "r", "same")], None).await;
        ensure!(results.iter().all(|r| r.status == PushStatus::Queued), "round {round}: {results:?}");
        ensure!(broker.pop(T, PopRequest { partitions: None, ..pop("q", 9) }).await?.len() == 2);
        ensure!(broker.delete_queue(T, &name).await?.existed);
    }
    check_tables(&client).await?;
    broker.shutdown().await;
    Ok(())
}
