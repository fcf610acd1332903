//! Every administrative call on groups, messages, dead letters and traces.

use anyhow::{Context, Result};
use queen_client_rust_tests::{Fixture, data, refused};
use queen_mq::{AckStatus, DlqParams, Error, QueueBuilder, SeekRequest, SubscriptionMode, TraceRequest};
use serde_json::{Value, json};

fn worker(fixture: &Fixture, group: &str) -> QueueBuilder {
    let queue = fixture.queen.queue("orders").group(group).batch(10).partitions(10).wait(false);
    queue.subscription_mode(SubscriptionMode::All)
}

fn seek(timestamp: Option<&str>, position: Option<&str>) -> SeekRequest {
    SeekRequest { timestamp: timestamp.map(Into::into), position: position.map(Into::into) }
}

fn status<T: std::fmt::Debug>(outcome: queen_mq::Result<T>) -> Result<u16> {
    match outcome {
        Err(Error::Http { status, .. }) => Ok(status),
        other => anyhow::bail!("an HTTP error was expected, not {other:?}"),
    }
}

#[tokio::test]
async fn groups_are_listed_and_told_in_detail() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.queen.queue("orders").partition("a").push_many(0..3).await?;
    fixture.queen.queue("orders").partition("b").push_many(0..2).await?;
    let popped = worker(&fixture, "mail").batch(3).partitions(1).pop().await?;
    let admin = fixture.queen.admin();

    let listed = admin.list_consumer_groups().await?;
    let mail = &listed.as_array().context("a bare array")?[0];
    assert_eq!(
        (&mail["name"], &mail["queueName"], &mail["topics"]),
        (&json!("mail"), &json!("orders"), &json!(["orders"]))
    );
    assert_eq!(
        (&mail["members"], &mail["partitionsWithLag"], &mail["totalLag"]),
        (&json!(2), &json!(2), &json!(5))
    );
    assert_eq!((&mail["state"], &mail["subscriptionMode"]), (&json!("Dead"), &json!("all")));
    assert_eq!(mail["subscriptionTimestamp"], "1970-01-01T00:00:00+00:00");

    let detail = admin.consumer_group("mail").await?;
    let lanes = detail["orders"]["partitions"].as_array().context("partitions")?;
    let held = lanes.iter().find(|lane| lane["partition"] == popped[0].partition).context("the lane")?;
    assert_eq!((&held["leaseActive"], &held["workerId"]), (&json!(true), &json!(popped[0].lease_id)));
    assert_eq!(lanes.iter().filter(|lane| lane["leaseActive"] == true).count(), 1);
    assert!(fixture.queen.ack_all(&popped).await?.iter().all(|ack| ack.success));
    assert_eq!(admin.list_consumer_groups().await?[0]["state"], "Stable");
    assert_eq!(admin.consumer_group("nobody").await?, json!({}));
    assert_eq!(admin.lagging_consumers(3600).await?, json!([]));
    Ok(())
}

#[tokio::test]
async fn a_group_is_sought_back_and_forth() -> Result<()> {
    let fixture = Fixture::start().await?;
    let admin = fixture.queen.admin();
    for n in 0..3 {
        fixture.queen.queue("orders").push(n).await?;
    }
    let popped = worker(&fixture, "mail").pop().await?;
    assert_eq!(popped.len(), 3);
    let back = admin.seek_consumer_group("mail", "orders", &seek(Some("2001-01-01T00:00:00Z"), None)).await?;
    assert_eq!((&back["success"], &back["partitionsUpdated"]), (&json!(true), &json!(1)));
    assert_eq!(
        (&back["seekToEnd"], &back["targetTimestamp"]),
        (&json!(false), &json!("2001-01-01T00:00:00.000Z"))
    );
    assert!(refused(&fixture.queen.ack(&popped[2]).await), "its lease is from before the seek");

    let stamp = popped[1].created_at.clone();
    admin.seek_consumer_group("mail", "orders", &seek(Some(&stamp), None)).await?;
    assert_eq!(data(&worker(&fixture, "mail").pop().await?), [json!(1), json!(2)]);
    admin.seek_consumer_group("mail", "orders", &seek(None, Some("beginning"))).await?;
    assert_eq!(worker(&fixture, "mail").pop().await?.len(), 3);
    admin.seek_consumer_group("mail", "orders", &seek(None, Some("end"))).await?;
    assert_eq!(worker(&fixture, "mail").pop().await?, []);

    assert_eq!(status(admin.seek_consumer_group("mail", "nothing", &seek(None, Some("end"))).await)?, 404);
    assert_eq!(status(admin.seek_consumer_group("mail", "orders", &seek(None, None)).await)?, 400);
    assert_eq!(status(admin.seek_consumer_group("mail", "orders", &seek(Some("soon"), None)).await)?, 400);
    Ok(())
}

#[tokio::test]
async fn a_group_is_forgotten() -> Result<()> {
    let fixture = Fixture::start().await?;
    let admin = fixture.queen.admin();
    fixture.queen.queue("orders").push("a").await?;
    let take = async || -> Result<usize> {
        let popped = worker(&fixture, "mail").pop().await?;
        fixture.queen.ack_all(&popped).await?;
        Ok(popped.len())
    };
    assert_eq!((take().await?, take().await?), (1, 0));
    let deleted = admin.delete_consumer_group_for_queue("mail", "orders", false).await?;
    assert_eq!((&deleted["deletedPartitions"], &deleted["metadataDeleted"]), (&json!(1), &json!(false)));
    assert_eq!(take().await?, 1, "it is subscribed to everything still");
    let deleted = admin.delete_consumer_group("mail", true).await?;
    assert_eq!((&deleted["success"], &deleted["deletedPartitions"]), (&json!(true), &json!(1)));
    assert_eq!((&deleted["consumerGroup"], &deleted["metadataDeleted"]), (&json!("mail"), &json!(true)));
    assert_eq!(admin.list_consumer_groups().await?, json!([]));
    assert_eq!(take().await?, 1);

    let changed = admin.set_subscription_timestamp("mail", "2031-04-01T00:00:00Z").await?;
    assert_eq!(
        (&changed["newTimestamp"], &changed["rowsUpdated"]),
        (&json!("2031-04-01T00:00:00Z"), &json!(1))
    );
    assert_eq!(status(admin.set_subscription_timestamp("mail", "soon").await)?, 400);
    Ok(())
}

#[tokio::test]
async fn messages_are_browsed() -> Result<()> {
    let fixture = Fixture::start().await?;
    let admin = fixture.queen.admin();
    fixture.queen.queue("shop.orders").push_many(0..3).await?;
    let popped = fixture.queen.queue("shop.orders").batch(1).wait(false).pop().await?;
    fixture.queen.ack(&popped[0]).await?;

    let page = admin.list_messages(&[("queue", "shop.orders".into())]).await?;
    assert_eq!((&page["total"], &page["mode"]["type"]), (&json!(3), &json!("queue")));
    let newest = &page["messages"][0];
    assert_eq!(
        (&newest["data"], &newest["payload"], &newest["status"]),
        (&json!(2), &json!(2), &json!("pending"))
    );
    assert_eq!((&newest["queuePath"], &newest["namespace"]), (&json!("shop.orders/Default"), &json!("shop")));
    let done = admin.list_messages(&[("status", "completed".into()), ("ns", "shop".into())]).await?;
    assert_eq!((&done["total"], &done["messages"][0]["data"]), (&json!(1), &json!(0)));
    assert_eq!(status(admin.list_messages(&[("status", "odd".into())]).await)?, 400);

    let one = admin.message(&popped[0].partition_id, &popped[0].transaction_id).await?;
    assert_eq!(
        (&one["id"], &one["data"], &one["status"]),
        (&json!(popped[0].id), &json!(0), &json!("completed"))
    );
    assert_eq!((&one["queueConfig"]["leaseTime"], &one["errorMessage"]), (&json!(60), &Value::Null));
    assert_eq!(status(admin.message(&popped[0].partition_id, "nothing").await)?, 404);
    assert_eq!(status(admin.message("no uuid", "nothing").await)?, 400);
    Ok(())
}

#[tokio::test]
async fn dead_letters_are_replayed_and_deleted() -> Result<()> {
    let fixture = Fixture::start().await?;
    let admin = fixture.queen.admin();
    let orders = fixture.queen.queue("orders").batch(1).wait(false);
    orders.push_many(["x", "y"]).await?;
    let mut dead = Vec::new();
    for _ in 0..2 {
        let popped = orders.pop().await?;
        assert!(fixture.queen.ack_with(&popped[0], AckStatus::Dlq, Some("no".into())).await?.dlq);
        dead.extend(popped);
    }
    let [x, y] = [&dead[0], &dead[1]];
    let replayed = admin.retry_message(&x.partition_id, &x.transaction_id).await?;
    assert_eq!((&replayed["success"], &replayed["dlqRowRemoved"]), (&json!(true), &json!(true)));
    assert_eq!((&replayed["result"], &replayed["replayedAs"]["status"]), (&json!("moved"), &json!("queued")));
    assert_eq!(replayed["originalTransactionId"], json!(x.transaction_id));
    let again = orders.pop().await?;
    assert_eq!((&again[0].data, &json!(again[0].id)), (&json!("x"), &replayed["replayedAs"]["message_id"]));
    assert_eq!(status(admin.retry_message(&x.partition_id, &x.transaction_id).await)?, 404);

    let deleted = admin.delete_message(&y.partition_id, &y.transaction_id).await?;
    assert_eq!(deleted["success"], true);
    assert_eq!(status(admin.delete_message(&y.partition_id, &y.transaction_id).await)?, 404);
    let params = DlqParams { queue: None, consumer_group: None, limit: None, offset: None };
    assert_eq!(admin.dlq(params).await?.total, 0);
    Ok(())
}

#[tokio::test]
async fn traces_are_written_and_found() -> Result<()> {
    let fixture = Fixture::start().await?;
    let admin = fixture.queen.admin();
    fixture.queen.queue("orders").push("x").await?;
    let popped = fixture.queen.queue("orders").wait(false).pop().await?;
    let trace = |step: i64| TraceRequest {
        transaction_id: popped[0].transaction_id.clone(),
        partition_id: popped[0].partition_id.clone(),
        consumer_group: "mail".into(),
        trace_names: Some(vec!["order 7/é".into()]),
        event_type: "step".into(),
        data: json!({ "step": step }),
    };
    for step in 0..2 {
        admin.record_trace(&trace(step)).await?;
    }
    let of_message = admin.traces_for_message(&popped[0].partition_id, &popped[0].transaction_id).await?;
    let events = of_message["traces"].as_array().context("events")?;
    assert_eq!(events.iter().map(|e| e["data"]["step"].clone()).collect::<Vec<_>>(), [json!(0), json!(1)]);
    assert_eq!((&events[0]["consumer_group"], &events[0]["event_type"]), (&json!("mail"), &json!("step")));

    let by_name = admin.traces_by_name("order 7/é", &[("limit", "1".into())]).await?;
    assert_eq!((&by_name["total"], &by_name["traces"][0]["queue_name"]), (&json!(2), &json!("orders")));
    let names = admin.trace_names(&[]).await?;
    assert_eq!((&names["total"], &names["trace_names"][0]["trace_count"]), (&json!(1), &json!(2)));
    let bad = TraceRequest { partition_id: "no uuid".into(), ..trace(9) };
    assert_eq!(status(admin.record_trace(&bad).await)?, 400);
    Ok(())
}
