//! Deduplication of what is written together, through one broker or two: with a window, with a window of zero, and under a
//! clock that was set back.

use std::time::Duration;

use anyhow::ensure;
use queen_core::Broker;
use queen_core::api::{ConfigureRequest, PushResult};
use queen_testkit::wait_until;
use queen_tests::build::{item, keys, pop, queue};
use queen_tests::scene::World;
use queen_tests::tables::check_tables;
use queen_types::{OptionsEdit, PushStatus, TenantId};
use tokio::task::JoinSet;

const T: TenantId = TenantId::DEFAULT;
const REQUESTS: usize = 24;

async fn configure_window(broker: &Broker, name: &str, seconds: i32) -> anyhow::Result<()> {
    let edit = OptionsEdit { dedup_window_seconds: Some(seconds), ..OptionsEdit::default() };
    broker.configure(T, ConfigureRequest { queue: queue(name), replace: false, edit }).await?;
    Ok(())
}

/// One request: a key, another one, and the first again.
async fn x_y_x(broker: Broker, name: &str) -> Vec<PushResult> {
    broker.push(T, vec![item(name, "p", "x"), item(name, "p", "y"), item(name, "p", "x")], None).await
}

fn expect_x_and_y_stored(results: &[PushResult]) -> anyhow::Result<()> {
    let statuses: Vec<PushStatus> = results.iter().map(|r| r.status).collect();
    ensure!(statuses == [PushStatus::Queued, PushStatus::Queued, PushStatus::Duplicate], "{results:?}");
    ensure!(results[2].message_id == results[0].message_id, "{results:?}");
    Ok(())
}

/// [E-22]: with a window of 0 every request stores its keys, each once, whether requests meet in one commit or not. Broken
/// by a broker that takes repeats out across the requests that it writes together: the outcome would depend on timing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_of_zero_stores_the_keys_of_every_request_whatever_the_timing() -> anyhow::Result<()> {
    let world = World::start().await?;
    configure_window(&world.brokers[0], "apart", 0).await?;
    configure_window(&world.brokers[0], "together", 0).await?;
    for request in 0..REQUESTS {
        expect_x_and_y_stored(&x_y_x(world.brokers[request % 2].clone(), "apart").await)?;
    }
    let mut tasks = JoinSet::new();
    for request in 0..REQUESTS {
        tasks.spawn(x_y_x(world.brokers[request % 2].clone(), "together"));
    }
    while let Some(results) = tasks.join_next().await {
        expect_x_and_y_stored(&results?)?;
    }
    for name in ["apart", "together"] {
        let stored = keys(&world.brokers[1].pop(T, pop(name, 1000)).await?);
        ensure!(stored == ["x", "y"].repeat(REQUESTS), "{name}: {stored:?}");
    }
    check_tables(&world.client).await?;
    world.stop().await;
    Ok(())
}

/// I-16 and [E-22] for requests that wait for the same commit: the partition is held, so that all of them are waiting when
/// it is let go. Broken by a broker that writes two requests of one key in one segment, or that takes the second one out
/// where there is no window.
#[tokio::test]
async fn requests_that_wait_together_are_stored_as_if_each_came_alone() -> anyhow::Result<()> {
    let world = World::start().await?;
    let broker = &world.brokers[0];
    for (name, window, stored) in [("window", 3600, 1), ("none", 0, REQUESTS)] {
        configure_window(broker, name, window).await?;
        broker.push(T, vec![item(name, "p", "before")], None).await;
        let mut session = world.db.connect().await?;
        let holder = session.transaction().await?;
        holder.batch_execute("SELECT FROM queen.log_partitions FOR UPDATE").await?;
        let mut tasks = JoinSet::new();
        tasks.spawn({
            let broker = broker.clone();
            let items = vec![item(name, "p", "first")];
            async move { broker.push(T, items, None).await }
        });
        let blocked = "SELECT count(*) FROM pg_stat_activity
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        wait_until("the first push to be on its way", Duration::from_secs(10), async || {
            world.client.query_one(blocked, &[]).await.is_ok_and(|row| row.get::<_, i64>(0) == 1)
        })
        .await?;
        for _ in 0..REQUESTS {
            tasks.spawn(x_y_x(broker.clone(), name));
        }
        // This runtime has one thread: every task has handed its request in when it comes back to this one.
        tokio::task::yield_now().await;
        holder.rollback().await?;
        let mut queued = 0;
        while let Some(results) = tasks.join_next().await {
            let results = results?;
            ensure!(results.iter().all(|r| r.status != PushStatus::Failed), "{results:?}");
            queued += results.iter().filter(|r| r.status == PushStatus::Queued).count();
        }
        ensure!(queued == 1 + 2 * stored, "{name}: {queued} were answered queued");
        let found = keys(&world.brokers[1].pop(T, pop(name, 1000)).await?);
        let expected = [vec!["before", "first"], ["x", "y"].repeat(stored)].concat();
        ensure!(found == expected, "{name}: {found:?}");
    }
    check_tables(&world.client).await?;
    world.stop().await;
    Ok(())
}

/// I-17 with a database clock that was set back by more than the window: a segment is stamped ahead of the clock then, as
/// those after it are. Broken by a window that is measured from that stamp instead of the clock: a key stored a moment ago
/// would seem to be older than the window.
#[tokio::test]
async fn i17_a_clock_that_was_set_back_forgets_no_key() -> anyhow::Result<()> {
    const WINDOW: i32 = 600;
    let world = World::start().await?;
    configure_window(&world.brokers[0], "q", WINDOW).await?;
    let first = world.brokers[0].push(T, vec![item("q", "p", "early")], None).await;
    world.brokers[1].push(T, vec![item("q", "p", "ahead")], None).await;
    world
        .client
        .execute(
            "UPDATE queen.log_segments SET created_at = clock_timestamp() + interval '1 hour' WHERE base_offset = 1",
            &[],
        )
        .await?;
    for broker in &world.brokers {
        let again = broker.push(T, vec![item("q", "p", "early"), item("q", "p", "ahead")], None).await;
        ensure!(again.iter().all(|r| r.status == PushStatus::Duplicate), "{again:?}");
        ensure!(again[0].message_id == first[0].message_id, "{again:?}");
    }
    check_tables(&world.client).await?;
    world.stop().await;
    Ok(())
}
