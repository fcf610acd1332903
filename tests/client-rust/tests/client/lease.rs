use std::time::Duration;

use anyhow::{Context, Result};
use queen_client_rust_tests::{Fixture, data, refused};
use queen_mq::QueueOptions;
use serde_json::json;

#[tokio::test]
async fn an_expired_lease_is_claimed_again_and_the_late_ack_is_refused() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders").batch(10).lease_seconds(1);
    orders.push_many(["a", "b"]).await?;
    let first = orders.clone().wait(false).pop().await?;
    assert_eq!(orders.clone().wait(false).pop().await?, [], "leased");

    let second = orders.clone().lease_seconds(60).poll_timeout(Duration::from_secs(15)).pop().await?;
    assert_eq!(data(&second), [json!("a"), json!("b")]);
    assert_ne!(second[0].lease_id, first[0].lease_id);
    assert!(refused(&fixture.queen.ack(&first[0]).await));
    assert!(fixture.queen.ack_all(&second).await?.iter().all(|ack| ack.success));
    assert_eq!(fixture.pending("orders", None).await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_renewed_lease_outlives_its_first_length() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders").batch(10);
    for lane in ["p", "q"] {
        orders.clone().partition(lane).push("a").await?;
    }
    let popped = orders.clone().partitions(2).lease_seconds(1).wait(false).pop().await?;
    assert_eq!(popped.len(), 2);
    assert!(fixture.queen.renew(&popped[0], Some(60)).await?);

    // Far beyond the first length nobody else gets the messages.
    assert_eq!(orders.clone().poll_timeout(Duration::from_millis(2500)).pop().await?, []);
    assert!(fixture.queen.ack_all(&popped).await?.iter().all(|ack| ack.success));
    Ok(())
}

#[tokio::test]
async fn a_renewal_tells_what_it_renewed() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders").batch(10).wait(false);
    for lane in ["p", "q", "r"] {
        orders.clone().partition(lane).push("a").await?;
    }
    let popped = orders.partitions(3).pop().await?;
    let admin = fixture.queen.admin();
    let renewed = admin.renew_lease(&popped[0].lease_id, Some(900)).await?;
    assert_eq!((renewed.success, renewed.renewed), (true, 3));
    assert_eq!(renewed.lease_id, popped[0].lease_id);
    let expires_at = renewed.expires_at().context("an expiry")?;
    assert!(expires_at > popped[0].created_at.as_str() && expires_at.ends_with('Z'));

    let unknown = admin.renew_lease("no-such-lease", None).await?;
    assert_eq!((unknown.success, unknown.renewed, unknown.expires_at()), (false, 0, None));
    Ok(())
}

#[tokio::test]
async fn renewing_a_lease_that_is_over_says_so() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders").wait(false);
    orders.push("a").await?;
    let popped = orders.pop().await?;
    assert!(fixture.queen.ack(&popped[0]).await?.success);
    assert!(!fixture.queen.renew(&popped[0], None).await?);
    Ok(())
}

#[tokio::test]
async fn a_consumer_that_renews_keeps_a_slow_message() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders").batch(1);
    orders.configure(QueueOptions { lease_time: Some(1), ..Default::default() }).await?;
    orders.push("slow").await?;
    // The handler takes longer than the lease: only the renewals keep it.
    let summary = orders
        .renew_lease(Duration::from_millis(300))
        .limit(1)
        .consume(|_| async {
            tokio::time::sleep(Duration::from_millis(2500)).await;
            Ok::<_, std::convert::Infallible>(())
        })
        .await?;
    assert_eq!((summary.processed, summary.acked, summary.nacked), (1, 1, 0));
    assert_eq!(fixture.pending("orders", None).await?, 0);
    Ok(())
}
