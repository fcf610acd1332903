use std::time::Duration;

use anyhow::Result;
use queen_client_rust_tests::{Fixture, data};
use queen_mq::{BufferOptions, PushItem, PushStatus};
use serde_json::{Value, json};
use uuid::Uuid;

fn item(queue: &str, transaction_id: &str, payload: Value) -> PushItem {
    PushItem::new(queue, payload).transaction_id(transaction_id)
}

fn version(id: &str) -> usize {
    Uuid::parse_str(id).map_or(0, |id| id.get_version_num())
}

#[tokio::test]
async fn one_message_is_stored_and_delivered_as_it_was() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders");
    let pushed = orders.push(json!({ "total": 19.99, "lines": [1, 2] })).await?;
    assert_eq!(pushed.len(), 1);
    assert_eq!((pushed[0].index, pushed[0].status), (0, PushStatus::Queued));
    assert_eq!(pushed[0].queue_name, "orders");
    assert_eq!(version(&pushed[0].message_id), 7);

    let popped = orders.wait(false).pop().await?;
    assert_eq!(data(&popped), [json!({ "total": 19.99, "lines": [1, 2] })]);
    let message = &popped[0];
    assert_eq!(message.id, pushed[0].message_id);
    assert_eq!(message.transaction_id, pushed[0].transaction_id);
    assert_eq!((message.partition.as_str(), message.consumer_group.as_str()), ("Default", "__QUEUE_MODE__"));
    assert_eq!((message.trace_id.as_ref(), message.producer_sub.as_ref()), (None, None));
    assert!(message.is_leased());
    assert!(Uuid::parse_str(&message.partition_id).is_ok());
    assert!(message.created_at.ends_with('Z'), "{}", message.created_at);
    Ok(())
}

#[tokio::test]
async fn a_batch_keeps_its_order() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders").partition("p");
    let pushed = orders.push_many(0..250).await?;
    assert!(pushed.iter().enumerate().all(|(i, r)| r.index == i && r.status == PushStatus::Queued));
    assert!(pushed.windows(2).all(|pair| pair[0].message_id < pair[1].message_id));

    let popped = orders.batch(1000).wait(false).pop().await?;
    assert_eq!(data(&popped), (0..250).map(Value::from).collect::<Vec<_>>());
    assert!(popped.iter().zip(&pushed).all(|(m, r)| m.id == r.message_id));
    Ok(())
}

#[tokio::test]
async fn a_known_transaction_id_is_a_duplicate() -> Result<()> {
    let fixture = Fixture::start().await?;
    let orders = fixture.queen.queue("orders");
    let first = orders.push_items(vec![item("orders", "t-1", json!("first"))]).await?;
    let again = orders
        .push_items(vec![
            item("orders", "t-1", json!("second")),
            item("orders", "t-2", json!("new")),
            item("orders", "t-2", json!("repeated in one request")),
        ])
        .await?;
    let statuses: Vec<PushStatus> = again.iter().map(|r| r.status).collect();
    assert_eq!(statuses, [PushStatus::Duplicate, PushStatus::Queued, PushStatus::Duplicate]);
    assert_eq!(again[0].message_id, first[0].message_id);
    assert_eq!(again[2].message_id, again[1].message_id);

    let popped = orders.batch(10).wait(false).pop().await?;
    assert_eq!(data(&popped), [json!("first"), json!("new")]);
    Ok(())
}

#[tokio::test]
async fn a_transaction_id_is_known_per_partition() -> Result<()> {
    let fixture = Fixture::start().await?;
    let pushed = fixture
        .queen
        .queue("orders")
        .push_items(vec![
            item("orders", "t", json!(1)),
            item("orders", "t", json!(2)).partition("other"),
            item("invoices", "t", json!(3)),
        ])
        .await?;
    assert!(pushed.iter().all(|r| r.status == PushStatus::Queued), "{pushed:?}");
    Ok(())
}

#[tokio::test]
async fn partitions_are_lanes_of_their_own() -> Result<()> {
    let fixture = Fixture::start().await?;
    let lane = |name: &str| fixture.queen.queue("orders").partition(name).batch(10).wait(false);
    lane("a").push_many(["a0", "a1"]).await?;
    lane("b").push_many(["b0"]).await?;

    let b = lane("b").pop().await?;
    assert_eq!((data(&b), b[0].partition.as_str()), (vec![json!("b0")], "b"));
    assert_eq!(data(&lane("a").pop().await?), [json!("a0"), json!("a1")]);
    assert_eq!(lane("missing").pop().await?, []);
    Ok(())
}

#[tokio::test]
async fn payloads_of_every_kind_come_back_equal() -> Result<()> {
    let fixture = Fixture::start().await?;
    let payloads = vec![
        Value::Null,
        json!(true),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(0.1),
        json!(""),
        json!("quotes \" backslash \\ newline \n tab \t null \u{0} emoji 🐝 umlaut ä"),
        json!([]),
        json!({}),
        json!({ "nested": { "deep": [{ "x": null }, [1, [2, [3]]]] }, "z": 1, "a": 2 }),
        json!("x".repeat(1 << 20)),
    ];
    let queue = fixture.queen.queue("kinds");
    queue.push_many(payloads.clone()).await?;
    assert_eq!(data(&queue.batch(100).wait(false).pop().await?), payloads);
    Ok(())
}

#[tokio::test]
async fn buffered_pushes_arrive_in_order() -> Result<()> {
    let fixture = Fixture::start().await?;
    let queue = fixture.queen.queue("orders").partition("p");
    let options = BufferOptions { message_count: 10, time: Duration::from_secs(60), ..Default::default() };
    let buffered = queue.clone().buffer(options);
    for n in 0..25 {
        buffered.push(n).await?;
    }
    fixture.queen.flush_all_buffers().await?;
    assert_eq!(fixture.queen.buffer_stats().total_buffered_messages, 0);
    assert_eq!(fixture.pending("orders", None).await?, 25);
    let popped = queue.batch(100).wait(false).pop().await?;
    assert_eq!(data(&popped), (0..25).map(Value::from).collect::<Vec<_>>());
    fixture.queen.close().await?;
    Ok(())
}

#[tokio::test]
async fn a_bad_request_is_refused_and_stores_nothing() -> Result<()> {
    let fixture = Fixture::start().await?;
    let queue = fixture.queen.queue("orders");
    for bad in [
        item("", "t-1", json!(1)),
        item(&"q".repeat(256), "t-1", json!(1)),
        item("orders", "with\u{1}control", json!(1)),
        item("orders", &"t".repeat(65_536), json!(1)),
        item("orders", "t-1", json!(1)).partition("nul\u{0}"),
    ] {
        let error = queue.push_items(vec![item("orders", "good", json!(0)), bad]).await.err();
        assert_eq!(error.as_ref().and_then(queen_mq::Error::status), Some(400), "{error:?}");
    }
    assert_eq!(queue.batch(10).wait(false).pop().await?, []);
    Ok(())
}
