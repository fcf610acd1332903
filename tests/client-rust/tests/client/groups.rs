use anyhow::{Context, Result};
use queen_client_rust_tests::{Fixture, data};
use queen_mq::{QueueBuilder, SubscriptionMode};
use serde_json::json;

fn group(fixture: &Fixture, name: &str) -> QueueBuilder {
    fixture.queen.queue("orders").group(name).batch(100).partitions(100).wait(false)
}

#[tokio::test]
async fn every_group_sees_everything() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.queen.queue("orders").push_many(0..3).await?;
    for name in ["mail", "audit"] {
        let popped = group(&fixture, name).subscription_mode(SubscriptionMode::All).pop().await?;
        assert_eq!(data(&popped), [json!(0), json!(1), json!(2)]);
        assert!(popped.iter().all(|message| message.consumer_group == name));
    }
    // Queue mode has a cursor of its own and always sees everything.
    let popped = fixture.queen.queue("orders").batch(100).wait(false).pop().await?;
    assert_eq!(popped.len(), 3);
    Ok(())
}

#[tokio::test]
async fn one_groups_ack_leaves_the_others_alone() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.queen.queue("orders").push_many(0..4).await?;
    let all = |name| group(&fixture, name).subscription_mode(SubscriptionMode::All);
    let mail = all("mail").pop().await?;
    all("audit").pop().await?;
    assert!(fixture.queen.ack(&mail[1]).await?.success);
    assert_eq!(fixture.pending("orders", Some("mail")).await?, 2);
    assert_eq!(fixture.pending("orders", Some("audit")).await?, 4);
    assert_eq!(fixture.pending("orders", None).await?, 4, "the slowest group counts");
    Ok(())
}

#[tokio::test]
async fn a_new_group_starts_after_what_is_there() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders");
    orders.push("old").await?;
    let news = group(&fixture, "news").subscription_mode(SubscriptionMode::New);
    assert_eq!(news.pop().await?, []);
    orders.push("new").await?;
    orders.clone().partition("born later").push("new lane").await?;
    let popped = news.pop().await?;
    let mut payloads = data(&popped);
    payloads.sort_by_key(|payload| payload.as_str().map(str::len));
    assert_eq!(payloads, [json!("new"), json!("new lane")]);
    Ok(())
}

#[tokio::test]
async fn without_a_mode_a_group_is_new() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.queen.queue("orders").push("old").await?;
    assert_eq!(group(&fixture, "g").pop().await?, []);
    fixture.queen.queue("orders").push("new").await?;
    assert_eq!(data(&group(&fixture, "g").pop().await?), [json!("new")]);
    Ok(())
}

#[tokio::test]
async fn a_group_may_subscribe_before_the_first_push() -> Result<()> {
    let fixture = Fixture::start().await?;
    assert_eq!(group(&fixture, "early").pop().await?, []);
    fixture.queen.queue("orders").push("first").await?;
    assert_eq!(data(&group(&fixture, "early").pop().await?), [json!("first")]);
    Ok(())
}

#[tokio::test]
async fn a_group_may_start_at_an_instant() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders");
    orders.push("before").await?;
    orders.push("at").await?;
    orders.push("after").await?;
    let everything = orders.batch(10).wait(false).pop().await?;
    let instant = &everything.get(1).context("three messages")?.created_at;
    let popped = group(&fixture, "since").subscription_from(instant.clone()).pop().await?;
    assert_eq!(data(&popped), [json!("at"), json!("after")]);

    assert_eq!(group(&fixture, "from now").subscription_from("now").pop().await?, []);
    let long_ago = group(&fixture, "long ago").subscription_from("2001-01-01T00:00:00Z");
    assert_eq!(long_ago.pop().await?.len(), 3);
    Ok(())
}

#[tokio::test]
async fn the_first_pop_of_a_group_decides_its_start() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.queen.queue("orders").push("old").await?;
    assert_eq!(group(&fixture, "g").subscription_mode(SubscriptionMode::New).pop().await?, []);
    assert_eq!(group(&fixture, "g").subscription_mode(SubscriptionMode::All).pop().await?, []);
    Ok(())
}

#[tokio::test]
async fn two_workers_of_a_group_never_hold_the_same_partition() -> Result<()> {
    let fixture = Fixture::start().await?;
    for lane in ["a", "b"] {
        fixture.queen.queue("orders").partition(lane).push(lane).await?;
    }
    let worker = group(&fixture, "g").subscription_mode(SubscriptionMode::All).partitions(1);
    let (first, second) = tokio::join!(worker.pop(), worker.pop());
    let (first, second) = (first?, second?);
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_ne!(first[0].partition, second[0].partition);
    assert_eq!(worker.pop().await?, []);
    Ok(())
}
