use anyhow::{Context, Result};
use queen_client_rust_tests::{Fixture, data};
use queen_mq::{AckStatus, QueueOptions, SubscriptionMode};
use serde_json::json;

/// Takes one name, as queue, partition, group and transaction id, through every route that carries it.
async fn check(fixture: &Fixture, name: &str) -> Result<()> {
    let queen = &fixture.queen;
    let admin = queen.admin();
    let queue = queen.queue(name);
    let configured = queue.configure(QueueOptions { retry_limit: Some(1), ..Default::default() }).await?;
    assert_eq!(configured["queue"], name);

    let lane = queue.clone().partition(name).batch(10).wait(false);
    let pushed = lane.push_many(["first", "second"]).await?;
    assert!(pushed.iter().all(|result| result.queue_name == name));

    // The partition route, in queue mode; then the queue route, in a group.
    let popped = lane.pop().await?;
    assert_eq!(data(&popped), [json!("first"), json!("second")]);
    assert_eq!(popped[0].partition, name);
    assert!(queen.ack_all(&popped).await?.iter().all(|ack| ack.success));
    let group = queue.clone().group(name).subscription_mode(SubscriptionMode::All).batch(10).wait(false);
    let popped = group.pop().await?;
    assert_eq!((popped.len(), popped[0].consumer_group.as_str()), (2, name));

    let depth = admin.queue_depth(name, Some(name)).await?;
    assert_eq!(
        (&depth["queue"], &depth["group"], &depth["pending"]),
        (&json!(name), &json!(name), &json!(2))
    );
    assert_eq!(depth["partitions"][0]["partition"], name);
    let detail = admin.queue(name).await?;
    assert_eq!((&detail["name"], &detail["partitions"][0]["name"]), (&json!(name), &json!(name)));
    let listed = admin.list_queues(&[]).await?;
    let queues = listed["queues"].as_array().context("a list")?;
    assert!(queues.iter().any(|entry| entry["name"] == name));

    let ack = queen.ack_with(&popped[0], AckStatus::Dlq, Some(name.into())).await?;
    assert!(ack.dlq);
    let dead = queue.clone().group(name).dlq(None, None).await?;
    assert_eq!(dead.messages.len(), 1);
    assert_eq!(dead.messages[0].queue.as_deref(), Some(name));
    assert_eq!(dead.messages[0].partition.as_deref(), Some(name));
    assert_eq!(dead.messages[0].error.as_deref(), Some(name));

    let rest = group.pop().await?;
    let bundle = queen.transaction().ack(&rest[0]).push_to(name, name, "third")?;
    assert!(bundle.commit().await?.success);
    assert_eq!(data(&group.pop().await?), [json!("third")]);

    assert_eq!(queue.delete().await?["existed"], true);
    Ok(())
}

#[tokio::test]
async fn plain_spaced_and_foreign_names_round_trip() -> Result<()> {
    let fixture = Fixture::start().await?;
    for name in ["plain", "with a space", " edges ", "żółw", "日本語", "🐝", "a.b.c"] {
        check(&fixture, name).await.with_context(|| format!("name {name:?}"))?;
    }
    Ok(())
}

#[tokio::test]
async fn names_that_need_escapes_in_a_path_round_trip() -> Result<()> {
    let fixture = Fixture::start().await?;
    for name in
        ["a/b", "/", "a//b/", "50%", "%2F", "%", "a+b", "a?b=c&d#e", "a;b:c@d", "\"quoted\"", "back\\slash"]
    {
        check(&fixture, name).await.with_context(|| format!("name {name:?}"))?;
    }
    Ok(())
}

#[tokio::test]
async fn the_longest_name_fits() -> Result<()> {
    let fixture = Fixture::start().await?;
    check(&fixture, &"ü".repeat(255)).await
}

#[tokio::test]
async fn transaction_ids_are_any_text() -> Result<()> {
    let fixture = Fixture::start().await?;
    let queue = fixture.queen.queue("orders").batch(10).wait(false);
    let ids = ["a/b", "50%", "日本 語", "\"'\\", &"x".repeat(65_535)];
    let items = ids.map(|id| queen_mq::PushItem::new("orders", json!(1)).transaction_id(id)).to_vec();
    let pushed = queue.push_items(items).await?;
    assert!(pushed.iter().zip(ids).all(|(result, id)| result.transaction_id == id));
    let popped = queue.pop().await?;
    assert!(popped.iter().zip(ids).all(|(message, id)| message.transaction_id == id));
    assert!(fixture.queen.ack_all(&popped).await?.iter().all(|ack| ack.success));
    Ok(())
}
