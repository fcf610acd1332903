use std::time::Duration;

use anyhow::Result;
use queen_client_rust_tests::{Fixture, data, refused};
use queen_mq::{AckStatus, QueueOptions};
use serde_json::{Value, json};

#[tokio::test]
async fn an_acked_message_is_gone() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders").wait(false);
    orders.push("a").await?;
    let popped = orders.pop().await?;
    let ack = fixture.queen.ack(&popped[0]).await?;
    assert!(ack.success && ack.lease_released && !ack.dlq && !ack.noop, "{ack:?}");
    assert_eq!(ack.transaction_id, popped[0].transaction_id);
    assert_eq!(orders.pop().await?, []);
    assert_eq!(fixture.pending("orders", None).await?, 0);

    // A repeat names a lease that is over.
    assert!(refused(&fixture.queen.ack(&popped[0]).await));
    Ok(())
}

#[tokio::test]
async fn one_batch_is_acked_in_one_call() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders").batch(10).wait(false);
    orders.push_many(0..10).await?;
    let popped = orders.pop().await?;
    let acks = fixture.queen.ack_all(&popped).await?;
    assert_eq!(acks.len(), 10);
    assert!(acks.iter().enumerate().all(|(i, ack)| ack.index == i && ack.success && !ack.dlq));
    assert_eq!(orders.pop().await?, []);
    Ok(())
}

#[tokio::test]
async fn acking_the_last_message_completes_the_batch() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders").batch(10).wait(false);
    orders.push_many(0..3).await?;
    let popped = orders.pop().await?;
    orders.push("pushed after the pop").await?;
    assert!(fixture.queen.ack(&popped[2]).await?.success);
    assert_eq!(data(&orders.pop().await?), [json!("pushed after the pop")]);
    Ok(())
}

#[tokio::test]
async fn a_partial_ack_keeps_the_lease_of_the_rest() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders").batch(10).wait(false);
    orders.push_many(0..3).await?;
    let popped = orders.pop().await?;
    assert!(fixture.queen.ack(&popped[0]).await?.success);
    assert_eq!(orders.pop().await?, [], "the rest is still leased");
    assert!(fixture.queen.ack(&popped[1]).await?.success);
    assert!(fixture.queen.ack(&popped[2]).await?.success);
    assert_eq!(fixture.pending("orders", None).await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_nack_redelivers_until_the_retries_are_used_and_then_dead_letters() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders").batch(1).wait(false);
    orders.configure(QueueOptions { retry_limit: Some(2), ..Default::default() }).await?;
    orders.push_many(["poison", "next"]).await?;
    for attempt in 0..3 {
        let popped = orders.pop().await?;
        assert_eq!(data(&popped), [json!("poison")], "attempt {attempt}");
        let ack = fixture.queen.nack(&popped[0], format!("failure {attempt}")).await?;
        assert_eq!((ack.success, ack.dlq), (true, attempt == 2), "{ack:?}");
    }
    assert_eq!(data(&orders.pop().await?), [json!("next")]);

    let dead = orders.dlq(None, None).await?;
    assert_eq!((dead.total, dead.messages.len()), (1, 1));
    assert_eq!(dead.messages[0].data, json!("poison"));
    assert_eq!(dead.messages[0].error.as_deref(), Some("failure 2"));
    assert_eq!(dead.messages[0].queue.as_deref(), Some("orders"));
    assert_eq!(dead.messages[0].partition.as_deref(), Some("Default"));
    assert_eq!(dead.messages[0].rest["retryCount"], json!(2));
    Ok(())
}

#[tokio::test]
async fn a_nacked_batch_comes_back_whole() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders").batch(10).wait(false);
    orders.push_many(0..3).await?;
    let popped = orders.pop().await?;
    let acks = fixture.queen.nack_all(&popped, "later").await?;
    assert_eq!(acks.len(), 3);
    assert_eq!(data(&orders.pop().await?), [json!(0), json!(1), json!(2)]);
    Ok(())
}

#[tokio::test]
async fn retry_charges_nothing_and_dlq_is_at_once() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders").batch(1).wait(false);
    orders.configure(QueueOptions { retry_limit: Some(0), ..Default::default() }).await?;
    orders.push_many(["a", "b"]).await?;
    for _ in 0..5 {
        let popped = orders.pop().await?;
        assert_eq!(data(&popped), [json!("a")]);
        assert!(fixture.queen.ack_with(&popped[0], AckStatus::Retry, None).await?.success);
    }
    let popped = orders.pop().await?;
    let ack = fixture.queen.ack_with(&popped[0], AckStatus::Dlq, Some("unwanted".into())).await?;
    assert!(ack.success && ack.dlq);
    let dead = orders.dlq(None, None).await?;
    assert_eq!(dead.messages[0].error.as_deref(), Some("unwanted"));
    assert_eq!(data(&orders.pop().await?), [json!("b")]);
    Ok(())
}

#[tokio::test]
async fn without_dead_lettering_an_exhausted_message_is_dropped() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders").batch(1).wait(false);
    orders
        .configure(QueueOptions {
            retry_limit: Some(0),
            dead_letter_queue: Some(false),
            dlq_after_max_retries: Some(false),
            ..Default::default()
        })
        .await?;
    orders.push_many(["a", "b"]).await?;
    let popped = orders.pop().await?;
    let ack = fixture.queen.nack(&popped[0], "no").await?;
    assert!(ack.success && !ack.dlq);
    assert_eq!(data(&orders.pop().await?), [json!("b")]);
    assert_eq!(orders.dlq(None, None).await?.total, 0);
    Ok(())
}

#[tokio::test]
async fn auto_ack_commits_with_the_claim() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders").batch(2).wait(false);
    orders.push_many(0..3).await?;
    let popped = orders.pop_auto_ack().await?;
    assert_eq!(data(&popped), [json!(0), json!(1)]);
    assert!(popped.iter().all(|message| !message.is_leased()));
    assert_eq!(data(&orders.pop_auto_ack().await?), [json!(2)]);
    assert_eq!(orders.pop().await?, []);

    let ack = fixture.queen.ack(&popped[0]).await?;
    assert!(ack.success && ack.noop, "{ack:?}");
    Ok(())
}

#[tokio::test]
async fn one_pop_may_claim_many_partitions_under_one_lease() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders").wait(false);
    for lane in 0..6 {
        orders.clone().partition(format!("p{lane}")).push_many([json!(lane), json!(lane)]).await?;
    }
    let popped = orders.clone().partitions(4).batch(100).pop().await?;
    let lanes: std::collections::BTreeSet<&str> = popped.iter().map(|m| m.partition.as_str()).collect();
    assert_eq!((popped.len(), lanes.len()), (8, 4));
    assert!(popped.iter().all(|m| m.lease_id == popped[0].lease_id));

    // A second worker gets the others.
    let others = orders.clone().partitions(10).batch(100).pop().await?;
    assert_eq!(others.len(), 4);
    assert!(others.iter().all(|m| !lanes.contains(m.partition.as_str()) && m.lease_id != popped[0].lease_id));

    for batch in [&popped, &others] {
        assert!(fixture.queen.ack_all(batch).await?.iter().all(|ack| ack.success));
    }
    assert_eq!(fixture.pending("orders", None).await?, 0);
    Ok(())
}

#[tokio::test]
async fn the_batch_bounds_what_is_delivered() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders").batch(4).wait(false);
    orders.push_many(0..10).await?;
    let mut seen = Vec::new();
    for expected in [4, 4, 2] {
        let popped = orders.pop().await?;
        assert_eq!(popped.len(), expected);
        assert!(fixture.queen.ack_all(&popped).await?.iter().all(|ack| ack.success));
        seen.extend(data(&popped));
    }
    assert_eq!(seen, (0..10).map(Value::from).collect::<Vec<_>>());
    Ok(())
}

#[tokio::test]
async fn a_pop_without_autopilot_asks_for_one_message() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders").wait(false).autopilot(false);
    orders.push_many(0..3).await?;
    assert_eq!(data(&orders.pop().await?), [json!(0)]);
    Ok(())
}

#[tokio::test]
async fn a_waiting_pop_is_woken_by_a_push() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders");
    let waiting = orders.clone().batch(10).poll_timeout(Duration::from_secs(25));
    let started = tokio::time::Instant::now();
    let (popped, pushed) = tokio::join!(waiting.pop(), orders.push("wake up"));
    pushed?;
    assert_eq!(data(&popped?), [json!("wake up")]);
    assert!(started.elapsed() < Duration::from_secs(20), "the push must end the wait");
    Ok(())
}

#[tokio::test]
async fn a_waiting_pop_ends_empty_at_its_timeout() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders").poll_timeout(Duration::from_millis(300));
    let started = tokio::time::Instant::now();
    assert_eq!(orders.pop().await?, []);
    assert!(started.elapsed() >= Duration::from_millis(300));
    Ok(())
}

#[tokio::test]
async fn discovery_finds_queues_by_namespace_and_task() -> Result<()> {
    let fixture = Fixture::start().await?;
    let queen = &fixture.queen;
    queen.queue("billing.invoice").push("by name").await?;
    let options =
        QueueOptions { namespace: Some("billing".into()), task: Some("refund".into()), ..Default::default() };
    queen.queue("back").configure(options).await?;
    queen.queue("back").push("by option").await?;
    queen.queue("other").push("elsewhere").await?;

    let discover = || queen.queue_opt(None).batch(10).partitions(10).wait(false);
    let invoices = discover().namespace("billing").task("invoice").pop().await?;
    assert_eq!(data(&invoices), [json!("by name")]);
    assert!(queen.ack_all(&invoices).await?.iter().all(|ack| ack.success));
    assert_eq!(data(&discover().namespace("billing").pop().await?), [json!("by option")]);
    assert_eq!(discover().task("nothing").pop().await?, []);
    Ok(())
}
