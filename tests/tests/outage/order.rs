//! Order of a partition through an outage, for brokers that keep it.

use queen_tests::build::item;
use queen_types::PushStatus;

use crate::{Scene, consume, keys};

#[tokio::test(flavor = "multi_thread")]
async fn s26_live_pushes_go_behind_what_is_spooled_of_their_partition() -> anyhow::Result<()> {
    let s = Scene::with(|options| {
        options.ordered = true;
        // The replay comes late, so that there is something to overtake.
        options.flush = std::time::Duration::from_millis(1500);
    })
    .await?;
    s.push_all(&["before"], PushStatus::Queued).await?;
    s.cut().await;
    s.push_all(&["a", "b"], PushStatus::Buffered).await?;
    s.proxy.restore();
    s.push_all(&["c"], PushStatus::Buffered).await?;
    let other = s.push(vec![item("q", "other", "x"), item("q", "p", "d")]).await;
    assert_eq!((other[0].status, other[1].status), (PushStatus::Queued, PushStatus::Buffered));
    s.drained().await?;
    s.push_all(&["e"], PushStatus::Queued).await?;
    assert_eq!(keys(&consume(&s.broker, "p").await?), ["before", "a", "b", "c", "d", "e"]);
    assert_eq!(keys(&consume(&s.broker, "other").await?), ["x"]);
    s.broker.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_that_option_live_pushes_overtake() -> anyhow::Result<()> {
    let s = Scene::with(|options| options.flush = std::time::Duration::from_millis(1500)).await?;
    s.push_all(&["before"], PushStatus::Queued).await?;
    s.cut().await;
    s.push_all(&["a"], PushStatus::Buffered).await?;
    s.proxy.restore();
    s.push_all(&["c"], PushStatus::Queued).await?;
    s.drained().await?;
    assert_eq!(keys(&consume(&s.broker, "p").await?), ["before", "c", "a"]);
    s.broker.shutdown().await;
    Ok(())
}
