//! The maintenance modes.

use std::time::{Duration, Instant};

use queen_core::Mode;
use queen_core::api::{PopRequest, TxnOperation, TxnRequest};
use queen_testkit::wait_until;
use queen_tests::build::{acks, item, pop, pop_partition};
use queen_types::{AckStatus, Group, PushStatus};

use crate::{SOON, Scene, T, consume, keys};

#[tokio::test(flavor = "multi_thread")]
async fn f01_pushes_are_kept_back_and_the_mode_survives_a_restart() -> anyhow::Result<()> {
    let mut s = Scene::start().await?;
    assert!(s.broker.set_maintenance(Mode::Push, true).await, "the row is written");
    // A key that one request repeats is spooled once.
    let results = s.push(vec![item("q", "p", "a"), item("q", "p", "a"), item("q", "p", "b")]).await;
    assert!(results.iter().all(|r| r.status == PushStatus::Buffered), "{results:?}");
    assert_eq!(results[0].message_id, results[1].message_id);
    assert_eq!(s.broker.buffered().pending, 2);
    s.restart().await?;
    assert!(s.broker.maintenance().push);
    tokio::time::sleep(Duration::from_millis(400)).await;
    // F-06: nothing is replayed before the mode is off.
    assert_eq!(s.broker.buffered().pending, 2);
    assert!(consume(&s.broker, "p").await?.is_empty());
    s.broker.set_maintenance(Mode::Push, false).await;
    s.drained().await?;
    assert_eq!(keys(&consume(&s.broker, "p").await?), ["a", "b"]);
    s.push_all(&["c"], PushStatus::Queued).await?;
    s.broker.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn f02_a_switch_during_an_outage_is_not_undone_and_reaches_the_row() -> anyhow::Result<()> {
    let s = Scene::start().await?;
    s.broker.set_maintenance(Mode::Pop, true).await;
    s.cut().await;
    assert!(!s.broker.set_maintenance(Mode::Push, true).await, "the row could not be written");
    assert!(!s.broker.set_maintenance(Mode::Pop, false).await);
    s.proxy.restore();
    for _ in 0..5 {
        let modes = s.broker.fresh_maintenance().await;
        assert!(modes.push && !modes.pop, "an older row undoes nothing");
    }
    let client = s.db.connect().await?;
    wait_until("the rows", SOON, async || {
        let sql = "SELECT key, (value ->> 'enabled')::boolean FROM queen.system_state WHERE key LIKE '%maintenance%'";
        let rows = client.query(sql, &[]).await.unwrap_or_default();
        let is = |key: &str, on: bool| rows.iter().any(|r| r.get::<_, &str>(0) == key && r.get::<_, bool>(1) == on);
        is("maintenance_mode", true) && is("pop_maintenance_mode", false)
    })
    .await?;
    s.broker.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn f03_a_row_changed_by_hand_is_taken_over_and_the_replay_goes_on() -> anyhow::Result<()> {
    let s = Scene::start().await?;
    s.broker.set_maintenance(Mode::Push, true).await;
    s.push_all(&["a"], PushStatus::Buffered).await?;
    let client = s.db.connect().await?;
    client
        .batch_execute(
            "UPDATE queen.system_state SET value = '{\"enabled\":false}' WHERE key = 'maintenance_mode'",
        )
        .await?;
    // A look at the mode takes it over, and the replay hears of it all the same.
    assert!(!s.broker.fresh_maintenance().await.push);
    s.drained().await?;
    assert_eq!(keys(&consume(&s.broker, "p").await?), ["a"]);
    s.broker.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn f04_parked_pops_end_at_once_and_leased_work_can_finish() -> anyhow::Result<()> {
    let s = Scene::start().await?;
    s.push_all(&["a"], PushStatus::Queued).await?;
    let leased = s.broker.pop(T, pop_partition("q", "p", 1)).await?;
    let parked: Vec<_> = (0..10)
        .map(|n| {
            let broker = s.broker.clone();
            let request = if n % 2 == 0 { pop("q", 1) } else { pop_partition("q", "p", 1) };
            let request = PopRequest { wait: Some(Duration::from_secs(30)), ..request };
            tokio::spawn(async move { broker.pop(T, request).await })
        })
        .collect();
    let all = async || s.broker.parked().iter().map(|(_, pops)| pops).sum::<usize>() == 10;
    wait_until("ten parked pops", SOON, all).await?;
    let began = Instant::now();
    s.broker.set_maintenance(Mode::Pop, true).await;
    for pop in parked {
        assert!(pop.await??.is_empty());
    }
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    s.push_all(&["b"], PushStatus::Queued).await?;
    assert!(s.broker.pop(T, pop("q", 1)).await?.is_empty(), "nothing is delivered");
    let acked = s.broker.ack(T, Group::queue_mode(), acks(&leased, AckStatus::Completed)).await;
    assert!(acked.iter().all(|a| a.success), "{acked:?}");
    s.broker.set_maintenance(Mode::Pop, false).await;
    assert_eq!(keys(&consume(&s.broker, "p").await?), ["b"]);
    s.broker.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn f07_a_transaction_commits_during_push_maintenance() -> anyhow::Result<()> {
    let s = Scene::start().await?;
    s.broker.set_maintenance(Mode::Push, true).await;
    let operations = vec![TxnOperation::Push(item("q", "p", "t"))];
    let request = TxnRequest { operations, required_leases: Vec::new() };
    s.broker.transaction(T, request, None).await?;
    assert_eq!(keys(&consume(&s.broker, "p").await?), ["t"]);
    s.broker.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_is_refused_during_maintenance_and_waits_otherwise() -> anyhow::Result<()> {
    let s = Scene::start().await?;
    s.broker.set_maintenance(Mode::Push, true).await;
    s.push_all(&["a", "b"], PushStatus::Buffered).await?;
    assert!(s.broker.replay_now(Duration::ZERO).await.is_err());
    s.broker.set_maintenance(Mode::Push, false).await;
    s.broker.replay_now(SOON).await?;
    assert_eq!(s.broker.buffered().pending, 0);
    s.broker.shutdown().await;
    Ok(())
}
