//! The broker starts again; PostgreSQL is killed under load.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use queen_core::{Broker, BrokerOptions, Mode, PgOptions};
use queen_pgcluster::{Cluster, ClusterOptions};
use queen_testkit::wait_until;
use queen_tests::build::item;
use queen_types::PushStatus;

use crate::{SOON, Scene, T, buffer, consume, keys};

#[tokio::test(flavor = "multi_thread")]
async fn s23_what_was_spooled_is_counted_right_after_a_restart() -> anyhow::Result<()> {
    let mut s = Scene::start().await?;
    s.broker.set_maintenance(Mode::Push, true).await;
    for hundred in 0..10 {
        let items = (0..100).map(|n| item("q", "p", &format!("{hundred}-{n}"))).collect();
        assert!(s.push(items).await.iter().all(|r| r.status == PushStatus::Buffered));
    }
    s.restart().await?;
    assert_eq!(s.broker.buffered().pending, 1000);
    s.broker.set_maintenance(Mode::Push, false).await;
    s.drained().await?;
    assert_eq!(consume(&s.broker, "p").await?.len(), 1000);
    s.broker.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn s11_a_replay_that_was_cut_short_stores_each_once() -> anyhow::Result<()> {
    let mut s = Scene::start().await?;
    s.broker.set_maintenance(Mode::Push, true).await;
    let names: Vec<String> = (0..250).map(|n| format!("k{n:03}")).collect();
    let items = names.iter().map(|key| item("q", "p", key)).collect();
    assert!(s.push(items).await.iter().all(|r| r.status == PushStatus::Buffered));
    s.broker.shutdown().await;
    // As a broker that died in mid-file leaves it: the file is whole, and two batches of it are stored.
    let kept = tempfile::tempdir()?;
    let name = s.files().into_iter().find(|name| name.ends_with(".buf")).context("a file")?;
    std::fs::copy(s.dir.path().join(&name), kept.path().join(&name))?;
    s.restart().await?;
    s.broker.set_maintenance(Mode::Push, false).await;
    s.drained().await?;
    s.broker.shutdown().await;
    std::fs::copy(kept.path().join(&name), s.dir.path().join(&name))?;
    s.restart().await?;
    s.drained().await?;
    assert_eq!(keys(&consume(&s.broker, "p").await?), names);
    s.broker.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn b03_a_broker_that_starts_during_an_outage_takes_pushes() -> anyhow::Result<()> {
    let mut s = Scene::start().await?;
    s.broker.set_maintenance(Mode::Push, true).await;
    s.push_all(&["a"], PushStatus::Buffered).await?;
    s.cut().await;
    s.restart().await?;
    assert!(!s.broker.schema_applied() && s.broker.can_buffer());
    s.push_all(&["b"], PushStatus::Buffered).await?;
    s.proxy.restore();
    wait_until("the schema", SOON, async || s.broker.schema_applied()).await?;
    wait_until("the mode", SOON, async || s.broker.maintenance().push).await?;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(s.broker.buffered().pending, 2, "the mode is read before anything is replayed");
    s.broker.set_maintenance(Mode::Push, false).await;
    s.drained().await?;
    assert_eq!(keys(&consume(&s.broker, "p").await?), ["a", "b"]);
    s.broker.shutdown().await;
    Ok(())
}

/// I-42, H-05: PostgreSQL is killed, and stopped, under load; every push that was answered is there once.
#[tokio::test(flavor = "multi_thread")]
async fn i42_a_postgresql_that_is_killed_under_load_loses_nothing() -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let options = ClusterOptions { fsync: true, ..ClusterOptions::for_tests(place.path().join("pg")) };
    let mut cluster = Cluster::start(options).await?;
    let pg = PgOptions {
        host: "127.0.0.1".to_owned(),
        port: cluster.port(),
        user: cluster.user().to_owned(),
        password: cluster.password().map(str::to_owned),
        database: "postgres".to_owned(),
        pool_size: 16,
        connect_timeout: Duration::from_secs(2),
        pool_wait: Duration::from_secs(2),
        ..PgOptions::default()
    };
    let mut files = buffer(&place.path().join("spool"));
    files.ordered = true;
    let options = BrokerOptions { pg, buffer: Some(files), ..queen_tests::options() };
    let broker = Broker::start(options).await?;
    let stop = Arc::new(AtomicBool::new(false));
    let producers: Vec<_> = (0..4)
        .map(|producer| {
            let (broker, stop) = (broker.clone(), stop.clone());
            tokio::spawn(async move {
                let mut statuses: HashMap<&str, u64> = HashMap::new();
                let mut pushed = 0u64;
                while !stop.load(Ordering::Relaxed) {
                    let partition = format!("p{producer}");
                    let items = (0..3)
                        .map(|n| item("q", &partition, &format!("{producer}-{:06}", pushed + n)))
                        .collect();
                    let results = broker.push(T, items, None).await;
                    pushed += 3;
                    for result in results {
                        assert!(
                            matches!(result.status, PushStatus::Queued | PushStatus::Buffered),
                            "{result:?}"
                        );
                        *statuses.entry(result.status.as_str()).or_default() += 1;
                    }
                }
                (pushed, statuses)
            })
        })
        .collect();
    for round in 0..3 {
        tokio::time::sleep(Duration::from_millis(400)).await;
        if round == 1 {
            cluster.stop_immediate().await?
        } else {
            cluster.kill().await?
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        cluster.restart().await?;
    }
    tokio::time::sleep(Duration::from_millis(400)).await;
    stop.store(true, Ordering::Relaxed);
    let mut all: HashMap<&str, u64> = HashMap::new();
    let mut pushed = Vec::new();
    for producer in producers {
        let (count, statuses) = producer.await?;
        pushed.push(count);
        statuses.into_iter().for_each(|(status, n)| *all.entry(status).or_default() += n);
    }
    wait_until("the spool to be empty", Duration::from_secs(30), async || broker.buffered().pending == 0)
        .await?;
    println!("{all:?}");
    assert!(all["buffered"] > 0 && all["queued"] > 0, "{all:?}");
    for (producer, count) in pushed.into_iter().enumerate() {
        let found = consume(&broker, &format!("p{producer}")).await?;
        let wanted: Vec<String> = (0..count).map(|n| format!("{producer}-{n:06}")).collect();
        let distinct: BTreeSet<&str> = keys(&found).into_iter().collect();
        assert_eq!(distinct.len(), found.len(), "nothing is stored twice");
        assert_eq!(distinct.len(), wanted.len(), "nothing is lost");
        assert_eq!(keys(&found), wanted, "with QUEEN_SPOOL_ORDERED a producer's order is kept");
    }
    broker.shutdown().await;
    cluster.stop().await?;
    Ok(())
}

/// What a client spooled that went away is replayed without anybody else coming.
#[tokio::test(flavor = "multi_thread")]
async fn events_of_a_client_that_went_away_are_replayed() -> anyhow::Result<()> {
    let s = Scene::start().await?;
    s.push_all(&["before"], PushStatus::Queued).await?;
    s.cut().await;
    let mut n = 0;
    while s.broker.buffered().pending == 0 {
        let going = s.push(vec![item("q", "p", &format!("k{n}"))]);
        // Let go at some moment, mostly before the answer.
        let _ = tokio::time::timeout(Duration::from_micros(100 * n), going).await;
        n += 1;
    }
    let pending = s.broker.buffered().pending;
    s.proxy.restore();
    s.drained().await?;
    assert!(consume(&s.broker, "p").await?.len() as u64 > pending);
    s.broker.shutdown().await;
    Ok(())
}
