//! How fast the replay goes on, and how it spares a database that is not well.

use std::time::{Duration, Instant};

use queen_core::Mode;
use queen_testkit::wait_until;
use queen_types::PushStatus;
use tokio_postgres::Client;

use crate::{SOON, Scene, consume, keys};

/// From now on the database refuses every segment for a passing reason, and counts how often it was asked.
async fn refuse_for_a_while(client: &Client) -> anyhow::Result<()> {
    client
        .batch_execute(
            "CREATE SEQUENCE IF NOT EXISTS public.asked;
             CREATE OR REPLACE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 PERFORM nextval('public.asked');
                 RAISE EXCEPTION 'no room' USING ERRCODE = '53100';
             END $$;
             CREATE TRIGGER refuse BEFORE INSERT ON queen.log_segments
                 FOR EACH ROW EXECUTE FUNCTION public.refuse()",
        )
        .await?;
    Ok(())
}

async fn accept(client: &Client) -> anyhow::Result<()> {
    Ok(client.batch_execute("DROP TRIGGER refuse ON queen.log_segments").await?)
}

async fn asked(client: &Client) -> anyhow::Result<i64> {
    let sql = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM public.asked";
    Ok(client.query_one(sql, &[]).await?.get(0))
}

/// The specification's minute, for the length of one pause and a little.
#[tokio::test(flavor = "multi_thread")]
async fn s08_failures_that_pass_move_no_file_and_are_spaced() -> anyhow::Result<()> {
    let s = Scene::with(|options| options.files.events_per_file = 2).await?;
    let client = s.db.connect().await?;
    s.broker.set_maintenance(Mode::Push, true).await;
    let names: Vec<String> = (0..6).map(|n| format!("k{n}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    s.push_all(&all, PushStatus::Buffered).await?;
    refuse_for_a_while(&client).await?;
    s.broker.set_maintenance(Mode::Push, false).await;
    wait_until("the first failure", SOON, async || asked(&client).await.is_ok_and(|n| n > 0)).await?;
    let before = s.files();
    assert_eq!(before.iter().filter(|name| name.ends_with(".buf")).count(), 3);
    // Ten attempts, then nothing for five seconds.
    let mut seen = (asked(&client).await?, Instant::now());
    wait_until("a pause", SOON, async || {
        let now = asked(&client).await.unwrap_or_default();
        if now != seen.0 {
            seen = (now, Instant::now());
        }
        seen.1.elapsed() > Duration::from_millis(1500)
    })
    .await?;
    // A push is tried up to three times in place.
    assert!((10..=30).contains(&seen.0), "{} in the first ten attempts", seen.0);
    tokio::time::sleep(Duration::from_millis(2500).saturating_sub(seen.1.elapsed())).await;
    assert_eq!(asked(&client).await?, seen.0, "it is pausing");
    wait_until("the end of the pause", SOON, async || asked(&client).await.is_ok_and(|n| n > seen.0)).await?;
    let paused = seen.1.elapsed();
    assert!(paused > Duration::from_millis(4500), "{paused:?}");
    let status = s.broker.buffered();
    assert_eq!((s.files(), status.pending, status.quarantined), (before, 6, 0));
    accept(&client).await?;
    s.broker.replay_now(SOON).await?;
    s.drained().await?;
    assert_eq!(keys(&consume(&s.broker, "p").await?), names);
    s.broker.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn s10_ten_files_a_cycle_and_one_while_the_database_is_not_well() -> anyhow::Result<()> {
    let s = Scene::with(|options| {
        options.files.events_per_file = 1;
        options.flush = Duration::from_millis(800);
    })
    .await?;
    let client = s.db.connect().await?;
    s.broker.set_maintenance(Mode::Push, true).await;
    let names: Vec<String> = (0..30).map(|n| format!("k{n:02}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    s.push_all(&all, PushStatus::Buffered).await?;
    refuse_for_a_while(&client).await?;
    s.broker.set_maintenance(Mode::Push, false).await;
    // A push is tried up to three times in place: the first attempt has failed as a whole.
    wait_until("a failure", SOON, async || asked(&client).await.is_ok_and(|n| n > 3)).await?;
    assert_eq!(s.broker.buffered().pending, 30);
    accept(&client).await?;
    // What waits between two cycles, seen often enough to miss no rest.
    let mut rests = Vec::new();
    let mut since = (30, Instant::now());
    while since.0 > 0 {
        let pending = s.broker.buffered().pending;
        if pending != since.0 {
            since = (pending, Instant::now());
        } else if since.1.elapsed() > Duration::from_millis(300) && rests.last() != Some(&pending) {
            rests.push(pending);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    rests.retain(|pending| *pending < 30);
    assert_eq!(rests, [29, 19, 9], "one file while it was not well, then ten at a time");
    assert_eq!(keys(&consume(&s.broker, "p").await?), names);
    s.broker.shutdown().await;
    Ok(())
}
