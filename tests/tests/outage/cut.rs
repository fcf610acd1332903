//! The link to the database is cut, or swallows everything.

use std::time::{Duration, Instant};

use queen_core::api::PopRequest;
use queen_testkit::wait_until;
use queen_tests::build::{item, pop, pop_partition};
use queen_types::PushStatus;

use crate::{SOON, Scene, T, consume, keys};

#[tokio::test(flavor = "multi_thread")]
async fn s01_s02_s27_pushes_survive_an_outage_in_order_and_under_their_ids() -> anyhow::Result<()> {
    let s = Scene::start().await?;
    s.push_all(&["before"], PushStatus::Queued).await?;
    s.cut().await;
    let ids = s.push_all(&["a", "b", "c"], PushStatus::Buffered).await?;
    let status = s.broker.buffered();
    assert_eq!((status.pending, status.pending_files), (3, 1), "{status:?}");
    assert!(!s.broker.is_database_healthy().await);
    assert!(s.files().iter().any(|name| name.ends_with(".tmp") || name.ends_with(".buf")), "{:?}", s.files());
    // A failure is never an empty answer.
    assert!(s.broker.pop(T, pop("q", 10)).await.is_err());
    s.proxy.restore();
    s.drained().await?;
    wait_until("a healthy database", SOON, async || s.broker.is_database_healthy().await).await?;
    let found = consume(&s.broker, "p").await?;
    assert_eq!(keys(&found), ["before", "a", "b", "c"]);
    assert_eq!(found[1..].iter().map(|(_, id)| *id).collect::<Vec<_>>(), ids);
    wait_until("an empty directory", SOON, async || s.files() == [".lock", "failed"]).await?;
    s.broker.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn s03_s04_what_was_committed_before_costs_no_other_message() -> anyhow::Result<()> {
    let s = Scene::start().await?;
    let first = s.push_all(&["m0"], PushStatus::Queued).await?;
    s.push_all(&["m1"], PushStatus::Queued).await?;
    s.cut().await;
    // As after a reply that was lost: the same ids again, among new ones.
    s.push_all(&["m0", "a", "m1", "b"], PushStatus::Buffered).await?;
    s.push_all(&["m0"], PushStatus::Buffered).await?;
    s.proxy.restore();
    s.drained().await?;
    let found = consume(&s.broker, "p").await?;
    assert_eq!(keys(&found), ["m0", "m1", "a", "b"]);
    assert_eq!(found[0].1, first[0]);
    s.broker.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn s03_replies_lost_at_any_moment_leave_one_copy_each() -> anyhow::Result<()> {
    let s = Scene::start().await?;
    let mut accepted = Vec::new();
    for round in 0..12 {
        let names: Vec<String> = (0..4).map(|n| format!("r{round}-{n}")).collect();
        let items = names.iter().map(|key| item("q", "p", key)).collect();
        let pushing = s.push(items);
        let cutting = async {
            tokio::time::sleep(Duration::from_micros(700 * round)).await;
            s.cut().await;
        };
        let (results, ()) = tokio::join!(pushing, cutting);
        assert!(
            results.iter().all(|r| matches!(r.status, PushStatus::Queued | PushStatus::Buffered)),
            "{results:?}"
        );
        accepted.extend(names);
        s.proxy.restore();
    }
    s.drained().await?;
    let found = consume(&s.broker, "p").await?;
    let mut stored = keys(&found);
    stored.sort_unstable();
    accepted.sort_unstable();
    assert_eq!(stored, accepted);
    s.broker.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn s05_a_key_pushed_twice_while_spooling_is_stored_once_if_the_queue_deduplicates() -> anyhow::Result<()>
{
    let s = Scene::start().await?;
    for (window, copies) in [(3600, 1), (0, 2)] {
        let queue = queen_tests::build::queue("q");
        let edit = queen_types::OptionsEdit { dedup_window_seconds: Some(window), ..Default::default() };
        s.broker.configure(T, queen_core::api::ConfigureRequest { queue, replace: false, edit }).await?;
        let partition = format!("w{window}");
        s.cut().await;
        for _ in 0..2 {
            let results = s.push(vec![item("q", &partition, "same")]).await;
            assert_eq!(results[0].status, PushStatus::Buffered);
        }
        s.proxy.restore();
        s.drained().await?;
        assert_eq!(consume(&s.broker, &partition).await?.len(), copies, "window {window}");
    }
    s.broker.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn s22_a_parked_consumer_hears_of_the_replay() -> anyhow::Result<()> {
    let s = Scene::start().await?;
    s.push_all(&["before"], PushStatus::Queued).await?;
    assert_eq!(consume(&s.broker, "p").await?.len(), 1);
    s.cut().await;
    s.push_all(&["later"], PushStatus::Buffered).await?;
    s.proxy.restore();
    let waiting = |request: PopRequest| PopRequest { wait: Some(SOON), ..request };
    let (one, any) =
        (s.broker.pop(T, waiting(pop_partition("q", "p", 1))), s.broker.pop(T, waiting(pop("q", 1))));
    let drained = async {
        s.drained().await?;
        Ok(Instant::now())
    };
    let first = async {
        tokio::select! {
            answer = one => answer,
            answer = any => answer,
        }
        .map(|answer| (answer.len(), Instant::now()))
        .map_err(anyhow::Error::from)
    };
    let (drained, (messages, heard)) = tokio::try_join!(drained, first)?;
    assert_eq!(messages, 1);
    assert!(heard.saturating_duration_since(drained) < Duration::from_secs(1));
    s.broker.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a13_a_link_that_swallows_everything_costs_seconds() -> anyhow::Result<()> {
    let s = Scene::start().await?;
    s.push_all(&["before"], PushStatus::Queued).await?;
    s.proxy.blackhole();
    let began = Instant::now();
    s.push_all(&["a"], PushStatus::Buffered).await?;
    s.push_all(&["b"], PushStatus::Buffered).await?;
    assert!(began.elapsed() < Duration::from_secs(12), "{:?}", began.elapsed());
    s.proxy.restore();
    wait_until("the spool to be empty", Duration::from_secs(20), async || s.broker.buffered().pending == 0)
        .await?;
    assert_eq!(keys(&consume(&s.broker, "p").await?), ["before", "a", "b"]);
    s.broker.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_that_waits_too_long_is_spooled_and_its_late_commit_is_a_duplicate() -> anyhow::Result<()> {
    let s = Scene::start().await?;
    s.push_all(&["before"], PushStatus::Queued).await?;
    let lock = s.db.connect().await?;
    lock.batch_execute("BEGIN; LOCK TABLE queen.log_segments IN ACCESS EXCLUSIVE MODE").await?;
    let began = Instant::now();
    s.push_all(&["late"], PushStatus::Buffered).await?;
    assert!(began.elapsed() < Duration::from_secs(9), "statement deadline and five seconds");
    lock.batch_execute("COMMIT").await?;
    s.drained().await?;
    assert_eq!(keys(&consume(&s.broker, "p").await?), ["before", "late"]);
    s.broker.shutdown().await;
    Ok(())
}
