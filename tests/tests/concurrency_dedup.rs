//! Deduplication through two brokers at the same time: a window of zero, and a clock that was set back.

use anyhow::ensure;
use queen_core::Broker;
use queen_core::api::{ConfigureRequest, PushResult};
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
